package gosdk

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// adopt puts the official options into o where o says nothing.
func adopt(o *server.Options, given *mcp.ServerOptions) {
	o.Instructions = or(o.Instructions, given.Instructions)
	o.Logger = or(o.Logger, given.Logger)
	o.PageSize = or(o.PageSize, given.PageSize)
	o.KeepAlive = or(o.KeepAlive, given.KeepAlive)
	if given.KeepAlive > 0 {
		o.KeepAliveMisses = or(o.KeepAliveMisses, max(given.KeepAliveFailureThreshold, 1))
	}
	if len(o.Versions) == 0 {
		o.Versions = given.SupportedProtocolVersions
	}
	if given.Capabilities != nil && o.Capabilities == nil {
		o.NoLogging = o.NoLogging || given.Capabilities.Logging == nil
		extensions := map[string]map[string]any{}
		for id, settings := range given.Capabilities.Extensions {
			extensions[id], _ = settings.(map[string]any)
		}
		maps.Copy(extensions, o.Extensions)
		o.Extensions = extensions
	}
}

func or[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// addHandlers registers the handlers among the official options.
func (s *Server) addHandlers(given *mcp.ServerOptions) {
	if h := given.CompletionHandler; h != nil {
		s.SetCompletion(completer(h))
	}
	if h := given.SubscribeHandler; h != nil {
		s.OnSubscribe(hook(func(ctx context.Context, scope *scope, uri string) error {
			p := &mcp.SubscribeParams{Meta: scope.request.Meta(), URI: uri}
			return h(ctx, &mcp.SubscribeRequest{Session: scope.session, Params: p, Extra: scope.extra})
		}))
	}
	if h := given.UnsubscribeHandler; h != nil {
		s.OnUnsubscribe(hook(func(ctx context.Context, scope *scope, uri string) error {
			p := &mcp.UnsubscribeParams{Meta: scope.request.Meta(), URI: uri}
			return h(ctx, &mcp.UnsubscribeRequest{Session: scope.session, Params: p, Extra: scope.extra})
		}))
	}
	if h := given.RootsListChangedHandler; h != nil {
		s.Use(afterwards("notifications/roots/list_changed", h))
	}
	if h := given.InitializedHandler; h != nil {
		s.Use(afterwards("notifications/initialized", h))
	}
	s.advertise(given)
}

func completer(h func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error)) server.CompletionHandler {
	return func(ctx context.Context, req *servercontext.Request, _ server.CompleteIn) (*mcp.CompletionResultDetails, error) {
		ctx, scope, leave, err := enter(ctx, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		call, err := callOf[mcp.CompleteParams](ctx, scope, req)
		if err != nil {
			return nil, err
		}
		result, err := h(ctx, call)
		if err != nil || result == nil {
			return nil, serverError(err)
		}
		return &result.Completion, nil
	}
}

func hook(h func(ctx context.Context, s *scope, uri string) error) server.SubscriptionHook {
	return func(ctx context.Context, req *servercontext.Request, uri string) error {
		ctx, scope, leave, err := enter(ctx, req)
		if err != nil {
			return err
		}
		defer leave()
		return serverError(h(ctx, scope, uri))
	}
}

// afterwards calls h for every notification of that method.
func afterwards[T any, P paramsOf[T]](method string, h func(context.Context, *mcp.ServerRequest[P])) server.Middleware {
	return func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			result, err := next(ctx, req)
			if err != nil || req.Method() != method {
				return result, err
			}
			ctx, scope, leave, err := enter(ctx, req)
			if err != nil {
				return nil, err
			}
			defer leave()
			call, err := callOf[T, P](ctx, scope, req)
			if err != nil {
				return nil, err
			}
			h(ctx, call)
			return result, nil
		}
	}
}

// advertise has the server advertise what the official options say beyond, or
// instead of, what follows from what is registered.
func (s *Server) advertise(given *mcp.ServerOptions) {
	c := given.Capabilities
	if c == nil {
		c = &mcp.ServerCapabilities{}
	}
	// What was registered once stays advertised.
	const name = "heed.none"
	//lint:ignore SA1019 servers that still set it keep what it does
	if given.HasTools || c.Tools != nil {
		s.MustAddRawTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
				return nil, nil
			})
		s.RemoveTools(name)
	}
	//lint:ignore SA1019 as above
	if given.HasPrompts || c.Prompts != nil {
		s.MustAddPrompt(&mcp.Prompt{Name: name},
			func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
				return nil, nil
			})
		s.RemovePrompts(name)
	}
	//lint:ignore SA1019 as above
	if given.HasResources || c.Resources != nil {
		const uri = "heed:none"
		s.MustAddResource(&mcp.Resource{Name: name, URI: uri},
			func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
				return nil, nil
			})
		s.RemoveResources(uri)
	}
	if c.Tools == nil && c.Prompts == nil && c.Resources == nil && c.Experimental == nil {
		return
	}
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			result, err := next(ctx, req)
			switch r := result.(type) {
			case *mcp.InitializeResult:
				copied := *r
				copied.Capabilities = overridden(r.Capabilities, c)
				return &copied, err
			case *mcp.DiscoverResult:
				copied := *r
				copied.Capabilities = overridden(r.Capabilities, c)
				return &copied, err
			}
			return result, err
		}
	})
}

func overridden(advertised, by *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	if advertised == nil {
		return nil
	}
	c := *advertised
	if by.Tools != nil {
		c.Tools = by.Tools
	}
	if by.Prompts != nil {
		c.Prompts = by.Prompts
	}
	if by.Resources != nil {
		c.Resources = by.Resources
	}
	if by.Experimental != nil {
		c.Experimental = by.Experimental
	}
	return &c
}
