package server

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// registry is what is registered with a server at one moment. It is immutable
// once published: requests read a snapshot without locks, changes are made to a copy
// (Server.change and Server.register are the only places that do).
type registry struct {
	middleware []Middleware
	tools      map[string]*tool
	prompts    map[string]*prompt
	resources  map[string]*resource // by URI
	templates  map[string]*template // by URI template
	listers    []*lister            // ordered by id
	completers completers
	filters    filters
	hooks      hooks
	custom     map[string]*method // by method name
	extensions map[string]*Extension
	had        features // kinds that were ever registered; only grows

	// The rest is derived by compile and never set elsewhere.
	toolList     func() *list[*mcp.Tool]
	promptList   func() *list[*mcp.Prompt]
	resourceList func() *list[*mcp.Resource]
	templateList func() *list[*mcp.ResourceTemplate]
	matchers     func() []*template      // templates in the order in which they are tried
	methods      map[string]*method      // built-in and custom, with their handlers wrapped
	offered      *mcp.ServerCapabilities // what is advertised, in full
	pages        *pages                  // encoded results that do not depend on the request
}

// features are kinds of things that can be registered. A kind stays advertised when the
// last of it was removed: a client that saw it may still list.
type features uint8

const (
	hasTools features = 1 << iota
	hasPrompts
	hasResources
	hasCompletions
)

// hooks are called when clients subscribe to resources (subscribe.go), or say that
// their roots have changed (roots.go).
type hooks struct {
	subscribe, unsubscribe SubscriptionHook
	roots                  RootsHook
}

func newRegistry() *registry {
	return &registry{
		tools:     map[string]*tool{},
		prompts:   map[string]*prompt{},
		resources: map[string]*resource{},
		templates: map[string]*template{},
		custom:    map[string]*method{},

		extensions: map[string]*Extension{},
	}
}

func (r *registry) clone() *registry {
	return &registry{
		middleware: slices.Clone(r.middleware),
		tools:      maps.Clone(r.tools),
		prompts:    maps.Clone(r.prompts),
		resources:  maps.Clone(r.resources),
		templates:  maps.Clone(r.templates),
		listers:    slices.Clone(r.listers),
		completers: r.completers.clone(),
		filters:    r.filters,
		hooks:      r.hooks,
		custom:     maps.Clone(r.custom),
		extensions: maps.Clone(r.extensions),
		had:        r.had,
	}
}

// compile derives the second half of r from the first, and from the registry
// before where things are listed as they came.
func (r *registry) compile(s *Server, before *registry) {
	r.methods = make(map[string]*method, len(s.builtin)+len(r.custom))
	for name, m := range s.builtin {
		r.methods[name] = m.wrapped(r.middleware)
	}
	for name, m := range r.custom {
		r.methods[name] = m.wrapped(r.middleware)
	}
	r.compileItems(s, before)
}

// compileItems is compile where neither methods nor middleware have changed.
func (r *registry) compileItems(s *Server, before *registry) {
	ordered := s.options.RegistrationOrder
	r.toolList = relist(ordered, before.toolList, r.tools, func(t *tool) *mcp.Tool { return t.definition })
	r.promptList = relist(ordered, before.promptList, r.prompts, func(p *prompt) *mcp.Prompt { return p.definition })
	r.resourceList = relist(ordered, before.resourceList, r.resources, func(r *resource) *mcp.Resource { return r.definition })
	r.templateList = relist(ordered, before.templateList, r.templates, func(t *template) *mcp.ResourceTemplate { return t.definition })
	r.matchers = sync.OnceValue(func() []*template { return matchers(r.templates) })
	r.offered = s.offered(r)
	r.pages = &pages{}
}

// current is the registry as of now.
func (s *Server) current() *registry {
	if r := s.registry.Load(); r != nil {
		return r
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.currentLocked()
}

// currentLocked publishes what register has left to be published.
func (s *Server) currentLocked() *registry {
	if s.draft != nil {
		s.draft.methods = s.published.methods
		s.draft.compileItems(s, s.published)
		s.publishLocked(s.draft)
	}
	return s.published
}

func (s *Server) publishLocked(r *registry) {
	s.published, s.draft = r, nil
	s.registry.Store(r)
}

// change publishes a changed copy of the registry.
func (s *Server) change(f func(*registry)) {
	s.changing.Lock()
	defer s.changing.Unlock()
	before := s.currentLocked()
	next := before.clone()
	f(next)
	next.compile(s, before)
	s.publishLocked(next)
}

// register is change for tools, prompts, resources and templates. They come by the
// thousand, and a copy for each would make the cost of registering them grow with the
// square of their number: changes are collected until somebody looks.
func (s *Server) register(f func(*registry)) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.draft == nil {
		s.draft = s.published.clone()
		s.registry.Store(nil)
	}
	f(s.draft)
	if s.options.RegistrationOrder {
		s.currentLocked() // whose lists tell what came first
	}
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
