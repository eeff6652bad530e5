package gosdk

import (
	"context"
	"encoding/json"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server is a Heed server with the methods of *mcp.Server, so that code that
// registers things with the latter needs no change but for the generic mcp.AddTool, whose
// place [MustAddTool] takes. What it embeds is what transports serve, and what else Heed
// can do.
type Server struct {
	*server.Server

	receiving *layer // what AddReceivingMiddleware and AddSendingMiddleware added
}

// NewServer returns a server as mcp.NewServer does, and as server.New does with more. Both
// options may be nil; where both say something, options wins. It panics when they are
// unusable, as the other two do.
//
// Of the official options these are not used: SchemaCache (schemas are compiled once, at
// registration), GetSessionID (transport/streamable names its sessions), SetCacheable
// (server.Options.CacheHints says what it would), and ProgressNotificationHandler (no
// request of Heed's asks a client for progress). A logger that is nil is slog.Default().
func NewServer(implementation *mcp.Implementation, official *mcp.ServerOptions, options *server.Options) *Server {
	var o server.Options
	if options != nil {
		o = *options
	}
	var given mcp.ServerOptions
	if official != nil {
		given = *official
	}
	if (given.UnsubscribeHandler == nil) != (given.SubscribeHandler == nil) {
		panic("gosdk: SubscribeHandler and UnsubscribeHandler need one another")
	}
	adopt(&o, &given)
	s := Wrap(server.New(implementation, &o))
	s.addHandlers(&given)
	return s
}

// Wrap gives a Heed server the methods of *mcp.Server. Middleware that was added
// to it before stays outside of what AddReceivingMiddleware adds.
func Wrap(s *server.Server) *Server {
	w := &Server{Server: s, receiving: newLayer()}
	w.receiving.sending = &chain{handler: official().send}
	s.Use(w.receiving.middleware)
	return w
}

// AddTool adds a tool; see [AddRawTool]. It panics where that returns an error.
func (s *Server) AddTool(t *mcp.Tool, h mcp.ToolHandler) { must(AddRawTool(s, t, h)) }

// AddPrompt adds a prompt; see the function [AddPrompt]. It panics where that returns an error.
func (s *Server) AddPrompt(p *mcp.Prompt, h mcp.PromptHandler) { must(AddPrompt(s.Server, p, h)) }

// AddResource adds a resource; see the function [AddResource]. It panics where that
// returns an error.
func (s *Server) AddResource(r *mcp.Resource, h mcp.ResourceHandler) {
	must(AddResource(s.Server, r, h))
}

// AddResourceTemplate adds a template; see the function [AddResourceTemplate]. It
// panics where that returns an error.
func (s *Server) AddResourceTemplate(t *mcp.ResourceTemplate, h mcp.ResourceHandler) {
	must(AddResourceTemplate(s.Server, t, h))
}

// AddReceivingMiddleware adds middleware around that of earlier calls; the first
// one of a call is the outermost, as with mcp.Server. See [Use] for the rest.
func (s *Server) AddReceivingMiddleware(middleware ...mcp.Middleware) {
	s.receiving.wrap(middleware...)
}

// AddSendingMiddleware adds middleware around what requests send through their session, in the
// same order. It does not see what native handlers send, answers, or what the server sends by itself.
func (s *Server) AddSendingMiddleware(middleware ...mcp.Middleware) {
	s.receiving.sending.wrap(middleware...)
}

// ResourceUpdated tells the subscribers of a resource that it has changed. It does
// not wait for them and returns nil.
func (s *Server) ResourceUpdated(_ context.Context, params *mcp.ResourceUpdatedNotificationParams) error {
	if params != nil {
		s.Server.ResourceUpdated(params.URI)
	}
	return nil
}

// Run serves one session over a transport; see [Serve].
func (s *Server) Run(ctx context.Context, t mcp.Transport) error { return Serve(ctx, s.Server, t) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// AddReceivingCustomMethod adds a method of your own whose handler was written for the
// function of that name of the official SDK. Params and result embed mcp.ParamsBase and
// mcp.ResultBase. It returns a *server.RegistrationError when the name is the protocol's own.
func AddReceivingCustomMethod[T any, P paramsOf[T], R mcp.Result](s *Server, method string, h func(ctx context.Context, ss *mcp.ServerSession, params P) (R, error)) error {
	return server.AddMethod(s.Server, method, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (any, error) {
		ctx, scope, leave, err := enter(ctx, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		params, err := typed[T, P]{}.decode(req)
		if err != nil {
			return nil, err
		}
		result, err := h(ctx, scope.session, params.(P))
		if err != nil {
			return nil, serverError(err)
		}
		return result, nil
	})
}
