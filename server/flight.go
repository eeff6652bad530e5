package server

import (
	"slices"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// InFlight describes a request that was accepted and whose handler has not returned.
type InFlight struct {
	// Session is the session's id, "" without one; ID the request's id as JSON
	// text, as [Server.Cancel] takes them.
	Session, ID string
	// Method is the protocol's method; Name the tool, prompt or resource URI, if any.
	Method, Name string
	// Accepted is when the request came in.
	Accepted time.Time
	// Cancelled is why the request was cancelled, nil while it was not.
	Cancelled *cancellation.Error
}

// InFlight lists the requests whose handlers are waiting or running, cancelled
// ones included, the oldest first. A handler that is parked belongs to no request; one
// that was cancelled while it was parked is listed until it returns.
func (s *Server) InFlight() []InFlight {
	var all []InFlight
	for _, ss := range s.openSessions() {
		for _, c := range ss.snapshot() {
			all = append(all, c.describe())
		}
		all = append(all, ss.unattended()...)
	}
	slices.SortFunc(all, func(a, b InFlight) int { return a.Accepted.Compare(b.Accepted) })
	return all
}

// Cancel cancels a request as an operator: with origin Shutdown, so that the
// client, which did not ask for it, gets an error as its answer. session is the
// session's id and id the request's, as [Server.InFlight] lists them. It
// reports whether there was such a request.
func (s *Server) Cancel(session, id, reason string) bool {
	found := false
	for _, ss := range s.openSessions() {
		if ss.ID() != session {
			continue
		}
		for _, c := range ss.snapshot() {
			if c.id.String() == id && c.cancel(cancellation.Shutdown, reason) {
				found = true
			}
		}
	}
	return found
}

func (c *Call) describe() InFlight {
	return InFlight{
		Session: c.session.ID(), ID: c.id.String(), Method: c.method.name, Name: c.name(),
		Accepted: c.accepted, Cancelled: c.source.Requested(),
	}
}
