package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
)

// Invariants of this file. Each has a test named after it.
//
//	K1  A session that answers pings, however late, lives.
//	K2  One that leaves Options.KeepAliveMisses of them in a row unanswered ends,
//	    with origin Disconnect.
//	K3  No goroutine waits between two pings.

// keepAlive pings the client of a handshake-era session. A session that does not
// ping has none.
//
// Specification: basic/utilities/ping (2025-11-25).
type keepAlive struct {
	mu     sync.Mutex   // guards the fields below; Session.mu may be taken while it is held
	timer  *time.Timer  // to the next ping; set by startKeepAlive, under Session.mu, before anybody else knows k
	asked  []jsonrpc.ID // pings since the last one that was answered
	answer chan answer  // holds an answer to any of them; capacity 1
	ended  bool         // set once, by endKeepAlive
}

// startKeepAlive begins to ping, if the operator wants that and there is a stream
// to do it on.
func (ss *Session) startKeepAlive() {
	interval := ss.server.options.KeepAlive
	if interval <= 0 || ss.o.Send == nil {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.keepAlive == nil && ss.closed == nil {
		k := &keepAlive{answer: make(chan answer, 1)}
		ss.keepAlive = k
		k.timer = time.AfterFunc(interval, func() { ss.ping(k) })
	}
}

// ping looks whether the last pings were answered and sends the next one. It runs
// on the timer's goroutine (K3).
func (ss *Session) ping(k *keepAlive) {
	id, missed, ok := ss.nextPing(k)
	if !ok {
		if missed > 0 {
			reason := fmt.Sprintf("the client did not answer %d pings", missed)
			ss.server.options.Logger.Debug("session ended", "session", ss.ID(), "reason", reason)
			ss.Close(cancellation.Disconnect, reason)
		}
		return
	}
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = jsonrpc.AppendRequest(*buf, id, methodPing, nil)
	if err := ss.o.Send(*buf); err != nil {
		// As good as unanswered.
		ss.server.options.Logger.Debug("ping could not be sent", "session", ss.ID(), "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.timer.Reset(ss.server.options.KeepAlive)
	}
}

// nextPing registers the next ping. ok is false when the session has ended, or
// should because of missed pings.
func (ss *Session) nextPing(k *keepAlive) (id jsonrpc.ID, missed int, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return id, 0, false
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	select {
	case <-k.answer: // also a late one, or an error: somebody is there (K1)
		for _, old := range k.asked {
			delete(ss.pending, old)
		}
		k.asked = k.asked[:0]
	default:
	}
	if len(k.asked) >= ss.server.options.KeepAliveMisses {
		return id, len(k.asked), false
	}
	ss.nextID++
	id = jsonrpc.NumberID(ss.nextID)
	put(&ss.pending, id, &question{id: id, method: methodPing, answer: k.answer})
	k.asked = append(k.asked, id)
	return id, 0, true
}

func (ss *Session) endKeepAlive() {
	ss.mu.Lock()
	k := ss.keepAlive
	ss.mu.Unlock()
	if k == nil {
		return // and there will be none: closed is set
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.timer.Stop()
}
