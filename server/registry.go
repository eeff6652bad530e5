package server

import (
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// registry is what is registered with a server at one moment. It is immutable
// once published: requests read a snapshot without locks, changes copy it
// (Server.change is the only place that does).
type registry struct {
	middleware []Middleware
	tools      map[string]*tool
	custom     map[string]*method // by method name

	// The rest is derived by compile and never set elsewhere.
	toolNames []string           // sorted
	methods   map[string]*method // built-in and custom, with their handlers wrapped
	pages     *pages             // encoded results that do not depend on the request
}

func newRegistry() *registry {
	return &registry{tools: map[string]*tool{}, custom: map[string]*method{}}
}

func (r *registry) clone() *registry {
	return &registry{
		middleware: slices.Clone(r.middleware),
		tools:      maps.Clone(r.tools),
		custom:     maps.Clone(r.custom),
	}
}

// compile derives the second half of r from the first.
func (r *registry) compile(s *Server) {
	r.toolNames = slices.Sorted(maps.Keys(r.tools))
	r.methods = make(map[string]*method, len(s.builtin)+len(r.custom))
	for name, m := range s.builtin {
		r.methods[name] = m.wrapped(r.middleware)
	}
	for name, m := range r.custom {
		r.methods[name] = m.wrapped(r.middleware)
	}
	r.pages = &pages{}
}

// capabilities returns what the server advertises: what is registered, unless
// the operator said otherwise.
func (s *Server) capabilities(r *registry, rev *revision) *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{}
	if s.options.Capabilities != nil {
		*c = *s.options.Capabilities
	} else {
		c.Logging = &mcp.LoggingCapabilities{}
		if len(r.tools) > 0 || s.everHadTools() {
			c.Tools = &mcp.ToolCapabilities{ListChanged: true}
		}
	}
	for id, settings := range s.options.Extensions {
		if c.Extensions == nil {
			c.Extensions = map[string]any{}
		}
		c.Extensions[id] = settings
	}
	_ = rev
	return c
}

// change publishes a changed copy of the registry.
func (s *Server) change(f func(*registry)) {
	s.changing.Lock()
	defer s.changing.Unlock()
	next := s.registry.Load().clone()
	f(next)
	next.compile(s)
	s.registry.Store(next)
}

// Error values of registration.

// RegistrationError is returned when something cannot be registered; its text
// says what is wrong with it.
type RegistrationError struct {
	// Kind is what was to be registered: tool, method, prompt, resource, …
	Kind string
	// Name is its name.
	Name string
	// Err says what is wrong.
	Err error
}

func (e *RegistrationError) Error() string {
	return fmt.Sprintf("%s %q: %v", e.Kind, e.Name, e.Err)
}

func (e *RegistrationError) Unwrap() error { return e.Err }
