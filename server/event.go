package server

import "sync"

// eventKind is what has changed.
type eventKind uint8

const (
	eventToolsChanged eventKind = iota
	eventPromptsChanged
	eventResourcesChanged // resources or their templates
	eventResourceUpdated
)

// event is something that subscribers may want to hear of.
type event struct {
	kind eventKind
	uri  string // of the resource; eventResourceUpdated only
}

// concerns tells whether an update of e.uri is news for somebody who subscribed
// to uri: the same resource, or one below it when uri ends in a slash.
//
// Specification: server/resources: an update may name a sub-resource of the one
// subscribed to.
func (e event) concerns(uri string) bool {
	if e.uri == uri {
		return true
	}
	return len(uri) > 0 && uri[len(uri)-1] == '/' && len(e.uri) > len(uri) && e.uri[:len(uri)] == uri
}

// events hands every event to whoever subscribed. The zero value has no subscribers.
type events struct {
	mu          sync.Mutex // guards the fields below; no lock is taken while it is held
	subscribers map[int]func(event)
	next        int
}

// subscribe has f called with every later event, on the goroutine that
// publishes it: f must not block. After stop, no new call of f begins.
func (e *events) subscribe(f func(event)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.subscribers == nil {
		e.subscribers = map[int]func(event){}
	}
	key := e.next
	e.next++
	e.subscribers[key] = f
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.subscribers, key)
	}
}

// publish tells all subscribers of e.
func (s *Server) publish(e event) {
	s.events.mu.Lock()
	var few [4]func(event)
	subscribers := few[:0]
	for _, f := range s.events.subscribers {
		subscribers = append(subscribers, f)
	}
	s.events.mu.Unlock()
	for _, f := range subscribers {
		f(e)
	}
}

// ResourceUpdated tells the clients that subscribed to uri, or to a resource
// above it whose URI ends in a slash, that the resource has changed. It does not
// block; updates in quick succession are told once.
//
// Specification: server/resources (2025-11-25), basic/patterns/subscriptions (2026-07-28).
func (s *Server) ResourceUpdated(uri string) { s.share(event{kind: eventResourceUpdated, uri: uri}) }

// ToolsChanged tells clients that the list of tools has changed. Registering
// and removing tools does so by itself; this is for filters whose answer changes.
func (s *Server) ToolsChanged() { s.share(event{kind: eventToolsChanged}) }

// PromptsChanged is ToolsChanged for prompts.
func (s *Server) PromptsChanged() { s.share(event{kind: eventPromptsChanged}) }

// ResourcesChanged is ToolsChanged for resources and their templates, also for
// what listers ([Server.AddResourceLister]) return.
func (s *Server) ResourcesChanged() { s.share(event{kind: eventResourcesChanged}) }
