package server

import "sync"

// eventKind is something that subscribers may want to hear of.
type eventKind uint8

const (
	eventToolsChanged eventKind = iota
	eventPromptsChanged
	eventResourcesChanged
	eventResourceUpdated
)

// event is one thing that happened. uri is set for eventResourceUpdated only.
type event struct {
	kind eventKind
	uri  string
}

// events passes what happens to whoever subscribed: listen streams of the
// stateless era, sessions of the handshake era.
type events struct {
	mu        sync.Mutex             // guards subscribers
	listeners map[*listener]struct{} // written by subscribe and its stop
}

type listener struct{ f func(event) }

// subscribe has f called for each event until stop is called. f is called on the
// goroutine that publishes, must not block, and must not subscribe or stop.
func (e *events) subscribe(f func(event)) (stop func()) {
	l := &listener{f}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listeners == nil {
		e.listeners = map[*listener]struct{}{}
	}
	e.listeners[l] = struct{}{}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.listeners, l)
	}
}

// publish tells all subscribers of ev.
func (e *events) publish(ev event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		l.f(ev)
	}
}
