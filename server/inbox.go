package server

import (
	"errors"
	"maps"
	"slices"

	"github.com/heedmcp/heed/cancellation"
)

// Invariants of this file. Each has a test named after it.
//
//	B1  The notifications of one session are handled one after another, in the
//	    order in which they were read.
//	B2  An idle session has no goroutine for them.
//	B3  Those that wait, or run side by side, are bounded: what comes on top is dropped
//	    and logged.
//	B4  When the session ends, or the server drains, the one that is being handled is
//	    cancelled and the rest dropped.
//
// In the stateless scope there is no order to keep: notifications of different clients have
// nothing to do with one another, and are handled side by side.

// maxInbox bounds the notifications of one session that wait for their handlers, and those of
// the stateless scope that are being handled.
const maxInbox = 1024

// inbox holds the notifications of a session that wait for their handlers. The
// zero value is empty; the session's mu guards it.
type inbox struct {
	waiting []*Call
	current *Call              // the one whose handler runs; nil: no goroutine does
	aside   map[*Call]struct{} // those whose handlers run in the stateless scope
}

// quiet tells whether no handler runs.
func (in *inbox) quiet() bool { return in.current == nil && len(in.aside) == 0 }

// deliver has the handler of a notification run when its turn comes (B1).
func (ss *Session) deliver(c *Call) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	in := &ss.inbox
	switch {
	case ss.closed != nil, ss.scope && ss.refusingLocked():
		c.source.Finish()
	case ss.scope && len(in.aside) < maxInbox:
		put(&in.aside, c, struct{}{})
		go ss.handleAside(c)
	case ss.scope, len(in.waiting) >= maxInbox:
		c.source.Finish()
		c.server.options.Logger.Warn("dropped a notification, too many are waiting", "session", ss.ID(), "method", c.method.name)
	case in.current != nil:
		in.waiting = append(in.waiting, c)
	default:
		in.current = c
		go ss.handleInbox(c)
	}
}

// handleAside handles c beside all others.
func (ss *Session) handleAside(c *Call) {
	defer func() { // also when the handler ends this goroutine
		c.source.Finish()
		ss.mu.Lock()
		defer ss.mu.Unlock()
		delete(ss.inbox.aside, c)
		ss.wakeLocked()
	}()
	c.notified()
}

// handleInbox handles c and what comes meanwhile, and ends when there is no more (B2).
func (ss *Session) handleInbox(c *Call) {
	defer func() {
		if c == nil {
			return
		}
		// The handler has ended this goroutine; the rest needs another.
		c.source.Finish()
		if next := ss.nextNotification(); next != nil {
			go ss.handleInbox(next)
		}
	}()
	for c != nil {
		c.notified()
		c = ss.nextNotification()
	}
}

func (ss *Session) nextNotification() *Call {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	in := &ss.inbox
	in.current = nil
	if len(in.waiting) > 0 {
		in.current = in.waiting[0]
		in.waiting[0] = nil
		in.waiting = in.waiting[1:]
	} else {
		in.waiting = nil
		ss.wakeLocked()
	}
	return in.current
}

// clearInbox cancels the handler that runs and drops what waits (B4).
func (ss *Session) clearInbox(origin cancellation.Origin, reason string) {
	ss.mu.Lock()
	running, waiting := slices.Collect(maps.Keys(ss.inbox.aside)), ss.inbox.waiting
	if current := ss.inbox.current; current != nil {
		running = append(running, current)
	}
	ss.inbox.waiting = nil
	ss.mu.Unlock()
	for _, c := range running {
		c.source.Cancel(origin, reason)
	}
	for _, c := range waiting {
		c.source.Finish()
	}
}

// outlet is where the messages go that the handler of a notification sends: to the
// session's own stream, since a notification has none.
func (ss *Session) outlet(rev *revision) Reply {
	if rev.stateless {
		return discard{} // that era has no messages without a request
	}
	return outlet{ss}
}

type outlet struct{ session *Session }

var errNoStream = errors.New("server: the session has no stream for messages without a request")

func (o outlet) Send(msg []byte) error {
	if o.session.o.Send == nil {
		return errNoStream
	}
	return o.session.o.Send(msg)
}

func (outlet) Answer([]byte, int) {}
func (outlet) Silence()           {}

// notified runs the handler of a notification. Nobody is told how it went.
func (c *Call) notified() {
	if _, err := c.invoke(); err != nil && c.source.Requested() == nil {
		c.log().Error("notification handler failed", "error", err)
	}
	c.source.Finish()
}
