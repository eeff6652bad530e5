package server

import "time"

// How requests get into a session and out of it; see the invariants in session.go.

// admission is the outcome of admit.
type admission uint8

const (
	admitted admission = iota
	refusedDuplicate
	refusedClosed
	refusedDraining
	refusedFull
)

// admit registers c, in the order in which its messages were read (S1). A cancel
// that came first is returned for the caller to apply.
func (ss *Session) admit(c *Call) (a admission, overtaken *earlyCancel) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch {
	case ss.closed != nil:
		return refusedClosed, nil
	case ss.refusingLocked(): // again, under mu: a drain waits for what it finds
		return refusedDraining, nil
	case ss.calls[c.id] != nil:
		return refusedDuplicate, nil
	case ss.fullLocked():
		return refusedFull, nil
	}
	if !ss.scope {
		put(&ss.calls, c.id, c)
		delete(ss.parked, c.id) // the id is taken anew: a cancel now means this request
	}
	put(&ss.running, c, struct{}{})
	if !c.method.endless {
		ss.server.counters.inFlight.Add(1)
	}
	if ss.o.Unordered {
		overtaken = ss.earlyLocked().take(c.id, time.Now())
	}
	return admitted, overtaken
}

// fullLocked tells whether the session has as many requests as it may. Handlers that
// run on although they were cancelled have given their places back, so that a Stop makes
// room at once; they are counted by themselves, or there would be no bound for them.
func (ss *Session) fullLocked() bool {
	most := ss.server.options.MaxInFlight
	return most > 0 && (len(ss.calls) >= most || ss.lingering >= most)
}

// adopt registers a call that has no id here: work that has left its request.
func (ss *Session) adopt(c *Call) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	put(&ss.running, c, struct{}{})
	ss.server.counters.inFlight.Add(1)
}

// refusing tells whether requests are refused because of a shutdown.
func (ss *Session) refusing() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.refusingLocked()
}

func (ss *Session) refusingLocked() bool { return ss.draining || ss.server.draining.Load() }

// forget takes c out of calls, once: its id is free. It is called by everybody who
// settles c.
func (ss *Session) forget(c *Call) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if c.left {
		return
	}
	c.left = true
	if ss.calls[c.id] == c {
		delete(ss.calls, c.id)
		if ss.o.Unordered {
			ss.earlyLocked().finished(c.id)
		}
	}
	if !c.method.endless {
		ss.server.counters.inFlight.Add(-1)
	}
	if c.handler.Load() != handlerReturned {
		c.lingers = true
		ss.lingering++
	}
}

// returned notes that c's handler has returned, or never started.
func (ss *Session) returned(c *Call) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.running, c)
	if c.lingers {
		ss.lingering--
	}
	ss.wakeLocked()
}
