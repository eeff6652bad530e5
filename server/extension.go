package server

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/heedmcp/heed/servercontext"
)

// Extension is an optional part of the protocol that a package adds to a server:
// a capability, methods, members of subscriptions/listen, and middleware. It exists in the
// stateless era, where each request says which extensions its client knows.
//
// Specification: basic/versioning (2026-07-28), extensions.
type Extension struct {
	// ID names it, with its prefix, such as com.example/reviews.
	ID string
	// Settings are advertised with it; nil: there are none.
	Settings map[string]any
	// Methods are served to clients that declare the extension in the request;
	// others are answered -32021, unless the method is open to them.
	Methods []ExtensionMethod
	// Listen are members that it adds to the filter of subscriptions/listen.
	Listen []ListenField
	// Middleware is added as by [Server.Use]; nil: none.
	Middleware Middleware
}

// ExtensionMethod is a request that an extension defines.
type ExtensionMethod struct {
	// Name is the method's, which may be one that is reserved for the extension.
	Name string
	// NameParam is the member of params that the Mcp-Name header repeats; "": none.
	NameParam string
	// Undeclared serves clients as well that do not declare the extension: it asks
	// nothing of them.
	Undeclared bool
	// Handler serves it. The client has declared the extension, unless Undeclared.
	Handler Handler
}

// AddExtension adds an extension. It is an error when it has no id, is there
// already, or has a method that is the protocol's own or somebody else's.
func (s *Server) AddExtension(e *Extension) (err error) {
	if e == nil || e.ID == "" {
		return &RegistrationError{Kind: "extension", Err: errors.New("the id is empty")}
	}
	fail := func(text string) {
		if err == nil {
			err = &RegistrationError{Kind: "extension", Name: e.ID, Err: errors.New(text)}
		}
	}
	s.change(func(r *registry) {
		if r.extensions[e.ID] != nil {
			fail("it is there already")
		}
		for _, m := range e.Methods {
			switch {
			case m.Name == "" || m.Handler == nil:
				fail("a method has no name or no handler")
			case s.builtin[m.Name] != nil || r.custom[m.Name] != nil:
				fail(fmt.Sprintf("method %q is there already", m.Name))
			}
		}
		if err != nil {
			return
		}
		r.extensions[e.ID] = e
		for _, m := range e.Methods {
			handler := m.Handler
			if !m.Undeclared {
				handler = forDeclaring(e.ID, handler)
			}
			r.custom[m.Name] = &method{name: m.Name, eras: eraStateless, nameParam: m.NameParam, handler: handler}
		}
		if e.Middleware != nil {
			r.middleware = append(r.middleware, e.Middleware)
		}
	})
	return err
}

// forDeclaring serves clients that declare the extension.
func forDeclaring(id string, h Handler) Handler {
	return func(ctx context.Context, req *servercontext.Request) (any, error) {
		if err := requireExtension(req, id); err != nil {
			return nil, err
		}
		return h(ctx, req)
	}
}

func requireExtension(req *servercontext.Request, id string) error {
	return req.RequireClientCapability("extensions." + id)
}

// advertise adds the extensions to what is offered.
func (r *registry) advertise(offered map[string]any) {
	for id, e := range r.extensions {
		settings := e.Settings
		if settings == nil {
			settings = map[string]any{} // an object, never null
		}
		offered[id] = maps.Clone(settings)
	}
}

// NameParam is the member of params that names what a request is for, and that the
// Mcp-Name header repeats; "" for methods without one, and for unknown ones.
//
// Specification: basic/transports/streamable-http (2026-07-28), standard headers.
func (s *Server) NameParam(name string) string {
	if md := s.current().methods[name]; md != nil {
		return md.nameParam
	}
	return ""
}
