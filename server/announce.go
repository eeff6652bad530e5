package server

import (
	"sync"
	"time"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// Invariants of this file. Each has a test named after it.
//
//	N1  Nothing is announced before the client has said that it is initialized; what
//	    changed meanwhile is announced then.
//	N2  Changes in quick succession are announced once.
//	N3  Only what is advertised is announced, and only updates of resources
//	    that the session watches.
//	N4  A client that does not read holds up nobody but itself.

// announcements are the changes that a handshake-era session is to be told of. A
// session has none before the first.
type announcements struct {
	mu      sync.Mutex                 // guards the fields below; Session.mu may be taken while it is held
	changed [eventResourceUpdated]bool // lists, by kind; set by note, cleared by take
	updated []string                   // resources, each once; grown by note, cleared by take
	known   map[string]struct{}        // what updated holds
	timer   *time.Timer                // runs while something waits to be told; nil else
	sending bool                       // a flush is under way; set and cleared by flush
	ended   bool                       // set once, by end
}

// maxAnnounced bounds the resources that wait to be announced to one session.
// Subscriptions to whole trees could otherwise pile up without end.
const maxAnnounced = 4096

// announce keeps an event for every session that should hear of it.
func (s *Server) announce(e event) {
	// Whether changes of lists are announced at all is seen to when they are: to look here
	// would publish the registry once for each of many registrations.
	if e.kind == eventResourceUpdated && !s.current().announces(e.kind) {
		return
	}
	for _, ss := range s.openSessions() {
		if ss.o.Send != nil && (e.kind != eventResourceUpdated || ss.watched.wants(e)) {
			ss.note(e)
		}
	}
}

func (ss *Session) note(e event) {
	ss.mu.Lock()
	if ss.announcements == nil && ss.closed == nil {
		ss.announcements = &announcements{}
	}
	a := ss.announcements
	ss.mu.Unlock()
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	if e.kind == eventResourceUpdated {
		if _, ok := a.known[e.uri]; !ok && len(a.updated) < maxAnnounced {
			if a.known == nil {
				a.known = map[string]struct{}{}
			}
			a.known[e.uri] = struct{}{}
			a.updated = append(a.updated, e.uri)
		}
	} else {
		a.changed[e.kind] = true
	}
	ss.armAnnouncementsLocked(a)
}

// noted returns what was noted, nil if nothing ever was.
func (ss *Session) noted() *announcements {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.announcements
}

// armAnnouncements has what was noted before the client was ready announced (N1).
func (ss *Session) armAnnouncements() {
	a := ss.noted()
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed != ([eventResourceUpdated]bool{}) || len(a.updated) > 0 {
		ss.armAnnouncementsLocked(a)
	}
}

// armAnnouncementsLocked starts the wait for further changes (N2).
func (ss *Session) armAnnouncementsLocked(a *announcements) {
	if a.timer == nil && !a.sending && !a.ended {
		a.timer = time.AfterFunc(max(ss.server.options.AnnounceDelay, 0), func() { ss.flushAnnouncements(a) })
	}
}

// flushAnnouncements tells the client what has changed. It runs on a timer's
// goroutine, one at a time for each session (N4).
func (ss *Session) flushAnnouncements(a *announcements) {
	a.mu.Lock()
	a.timer = nil
	if a.sending || a.ended || !ss.ready() {
		a.mu.Unlock()
		return // the one that sends, or the initialized notification, goes on (N1)
	}
	a.sending = true
	changed, updated := a.changed, a.updated
	a.changed, a.updated, a.known = [eventResourceUpdated]bool{}, nil, nil
	a.mu.Unlock()

	ss.sendAnnouncements(changed, updated)

	a.mu.Lock()
	defer a.mu.Unlock()
	a.sending = false
	if a.changed != ([eventResourceUpdated]bool{}) || len(a.updated) > 0 {
		ss.armAnnouncementsLocked(a)
	}
}

func (ss *Session) sendAnnouncements(changed [eventResourceUpdated]bool, updated []string) {
	buf := getBuffer()
	defer putBuffer(buf)
	send := func(method string, params []byte) {
		*buf = jsonrpc.AppendNotification((*buf)[:0], method, params)
		if err := ss.o.Send(*buf); err != nil {
			ss.server.options.Logger.Debug("announcement could not be sent", "session", ss.ID(), "method", method, "error", err)
		}
	}
	reg := ss.server.current()
	for kind, yes := range changed {
		if yes && reg.announces(eventKind(kind)) {
			send(changedMethods[kind], nil)
		}
	}
	for _, uri := range updated {
		// The client may have unsubscribed since.
		if ss.watched.wants(event{kind: eventResourceUpdated, uri: uri}) {
			send(methodResourceUpdated, append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}'))
		}
	}
}

// ready tells whether the handshake is complete.
func (ss *Session) ready() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.phase == phaseReady && ss.closed == nil
}

// endAnnouncements drops what was not announced.
func (ss *Session) endAnnouncements() {
	a := ss.noted()
	if a == nil {
		return // and there will be none: closed is set
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.changed, a.updated, a.known = [eventResourceUpdated]bool{}, nil, nil
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
