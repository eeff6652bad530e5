package main

import "time"

// A silence is what the tap saw of one call after its client had stopped it.
type silence struct {
	id     string
	closed bool // it was stopped by closing its response, not by a notification

	// crossed are messages for the call that may have been on their way already
	// when the server learned of the stop.
	crossed int
	// after are messages for the call that came later than that: the protocol
	// wants none.
	after int
	// answered says that the call was answered, however early.
	answered bool

	// ended is how long after its client the server closed the response; 0 if
	// it did not yet. HTTP only.
	ended time.Duration
	// posted is the status with which a notifications/cancelled for the call
	// was answered, 0 without one. HTTP only.
	posted int
}

// transit is how long a message may take from the server to the tap, on a machine that has
// time: one that is late by something takes transitShare times as much longer.
const (
	transit      = 50 * time.Millisecond
	transitShare = 10
)

// silence reports on the call with the given progress token; stop is the
// server's record of the stop, nil without one.
func (t *tap) silence(token string, stop *Stop) silence {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, at := t.find(token)
	s := silence{id: id, closed: t.stop == closed}
	if at < 0 {
		return s
	}
	known := t.afterAnswers()
	if s.closed {
		known = afterRecord(stop, transit+transitShare*t.pulse.lateness())
	}
	for _, l := range t.lines[at+1:] {
		knew := known(l)
		switch {
		case l.sent:
		case l.method == closed && l.id == id:
			s.ended = l.at.Sub(t.lines[at].at)
		case l.method == methodCancelled && l.id == id:
			s.posted = l.status
		case l.id == id || l.token == text(token):
			if knew {
				s.after++
			} else {
				s.crossed++
			}
			s.answered = s.answered || l.method == ""
		}
	}
	return s
}

// Both of these make a function that is called with each line after a stop, in
// order, and says whether the server had learned of the stop before it sent
// that line.

// afterAnswers: on one stream, a server that answers a request which was sent
// after the stop has read the stop.
func (t *tap) afterAnswers() func(line) bool {
	later := map[string]bool{}
	known := false
	return func(l line) bool {
		switch {
		case l.sent && l.method != "" && l.id != "":
			later[l.id] = true
		case !l.sent && l.method == "" && later[l.id]:
			known = true
		}
		return known
	}
}

// afterRecord: between connections there is no order, so the server's own word
// counts. A call that it has recorded as stopped must not be answered at all;
// reports are told by their time.
func afterRecord(stop *Stop, transit time.Duration) func(line) bool {
	return func(l line) bool {
		return stop != nil && (l.method == "" || l.at.After(stop.Requested.Add(transit)))
	}
}
