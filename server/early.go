package server

import (
	"strings"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
)

// Invariants of this file. Each has a test named after it.
//
//	E1  Of a request and its cancel, the one that comes second finds the first: the
//	    look for the other and the noting of oneself are one step, under mu.
//	E2  A cancel that is remembered counts once, for a short time, and never for an id whose
//	    request finished lately.
//	E3  What is remembered is bounded, in number and size.

const (
	maxEarly      = 64              // cancels remembered per session
	earlyLifetime = 5 * time.Second // and for how long
	maxFinished   = 256             // ids remembered as finished, for which no cancel is
	maxKept       = 1024            // length of an id that is remembered, in bytes
)

// earlyCancels remembers cancels that arrived before the request they name,
// which happens where messages have no order. The zero value is empty; the
// session's mu guards it.
type earlyCancels struct {
	waiting map[jsonrpc.ID]earlyCancel
	done    []jsonrpc.ID // a ring of the ids that finished last, at most maxFinished
	next    int          // where the ring is written next, once it is full
}

func (ss *Session) earlyLocked() *earlyCancels {
	if ss.early == nil {
		ss.early = &earlyCancels{}
	}
	return ss.early
}

// cancelByPeer applies a notifications/cancelled, or remembers it where it may have overtaken
// its request (E1).
func (ss *Session) cancelByPeer(id jsonrpc.ID, reason string) {
	ss.mu.Lock()
	c := ss.calls[id]
	if ss.o.Unordered && c == nil && ss.parked[id] == nil {
		ss.earlyLocked().add(id, reason, time.Now())
	}
	ss.mu.Unlock()
	if c == nil || !c.cancel(cancellation.Peer, reason) {
		ss.cancelParked(id, reason)
	}
}

type earlyCancel struct {
	reason string
	at     time.Time
}

// add remembers a cancel for an id that is not in flight, unless a request with
// that id finished lately: then the cancel was late, not early.
func (e *earlyCancels) add(id jsonrpc.ID, reason string, now time.Time) {
	if len(id.String()) > maxKept {
		return
	}
	for _, d := range e.done {
		if d == id {
			return
		}
	}
	for old, c := range e.waiting {
		if now.Sub(c.at) > earlyLifetime {
			delete(e.waiting, old)
		}
	}
	if len(e.waiting) >= maxEarly {
		return
	}
	if e.waiting == nil {
		e.waiting = map[jsonrpc.ID]earlyCancel{}
	}
	e.waiting[id.Clone()] = earlyCancel{reason: strings.Clone(reason[:min(len(reason), cancellation.MaxReason)]), at: now}
}

// take returns and forgets the cancel that waits for id, nil if there is none.
func (e *earlyCancels) take(id jsonrpc.ID, now time.Time) *earlyCancel {
	if _, ok := e.waiting[id]; !ok {
		return nil
	}
	c := e.waiting[id] // only now, since c escapes
	delete(e.waiting, id)
	if now.Sub(c.at) > earlyLifetime {
		return nil
	}
	return &c
}

// finished notes that the request with that id has ended.
func (e *earlyCancels) finished(id jsonrpc.ID) {
	if len(id.String()) > maxKept {
		return
	}
	if len(e.done) < maxFinished {
		e.done = append(e.done, id.Clone())
		return
	}
	e.done[e.next] = id.Clone()
	e.next = (e.next + 1) % maxFinished
}
