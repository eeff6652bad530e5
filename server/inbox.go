package server

import (
	"errors"

	"github.com/heedmcp/heed/cancellation"
)

// Invariants of this file. Each has a test named after it.
//
//	B1  The notifications of one session are handled one after another, in the
//	    order in which they were read.
//	B2  An idle session has no goroutine for them.
//	B3  Those that wait are bounded: what comes on top is dropped and logged.
//	B4  When the session ends, the one that is being handled is cancelled and the rest dropped.

// maxInbox bounds the notifications of one session that wait for their handlers.
const maxInbox = 1024

// inbox holds the notifications of a session that wait for their handlers. The
// zero value is empty; the session's mu guards it.
type inbox struct {
	waiting []*Call
	current *Call // the one whose handler runs; nil: no goroutine does
}

// deliver has the handler of a notification run when its turn comes (B1).
func (ss *Session) deliver(c *Call) {
	if ss == ss.server.stateless {
		go c.notified() // its senders have nothing to do with one another
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	in := &ss.inbox
	switch {
	case ss.closed != nil:
		c.source.Finish()
	case len(in.waiting) >= maxInbox:
		c.source.Finish()
		c.server.options.Logger.Warn("dropped a notification, too many are waiting", "session", ss.ID(), "method", c.method.name)
	case in.current != nil:
		in.waiting = append(in.waiting, c)
	default:
		in.current = c
		go ss.handleInbox(c)
	}
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
	current, waiting := ss.inbox.current, ss.inbox.waiting
	ss.inbox.waiting = nil
	ss.mu.Unlock()
	if current != nil {
		current.source.Cancel(origin, reason)
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
