package server

import "fmt"

// Change is something that subscribers want to hear of, in a form that can be sent to
// other processes which serve the same clients: see [Options.Changed].
type Change struct {
	// Method is the notification that clients get: notifications/tools/list_changed,
	// notifications/prompts/list_changed, notifications/resources/list_changed, or
	// notifications/resources/updated.
	Method string `json:"method"`
	// URI is the resource that was updated, "" for the other methods.
	URI string `json:"uri,omitempty"`
}

const methodResourceUpdated = "notifications/resources/updated"

// share tells the subscribers of this process of ev, and those of others.
func (s *Server) share(ev event) {
	s.publish(ev)
	changed := s.options.Changed
	if changed == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.options.Logger.Error("Changed panicked", "panic", p)
		}
	}()
	if ev.kind == eventResourceUpdated {
		changed(Change{Method: methodResourceUpdated, URI: ev.uri})
		return
	}
	changed(Change{Method: changedMethods[ev.kind]})
}

// Announce tells the clients of this server of a change that another process was told
// of by its [Options.Changed]. It is not told to this server's. It returns an error when
// the change is none that there is.
func (s *Server) Announce(c Change) error {
	if c.Method == methodResourceUpdated {
		if c.URI == "" {
			return fmt.Errorf("server: %s without a uri", c.Method)
		}
		s.publish(event{kind: eventResourceUpdated, uri: c.URI})
		return nil
	}
	for kind, method := range changedMethods {
		if c.Method == method {
			s.publish(event{kind: eventKind(kind)})
			return nil
		}
	}
	return fmt.Errorf("server: %q is no change that clients are told of", bounded(c.Method))
}
