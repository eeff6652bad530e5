package server

import (
	"context"

	"github.com/heedmcp/heed/servercontext"
)

// Handler serves one request or notification. result is what the protocol's
// method returns, as a pointer to the official SDK's type (*mcp.CallToolResult,
// *mcp.ListToolsResult, …), or any value that encodes to a JSON object for
// custom methods; for notifications it is ignored.
//
// Results that come from the server itself may be shared between requests: copy
// before you change one.
type Handler func(ctx context.Context, req *servercontext.Request) (result any, err error)

// Middleware wraps a Handler. The request tells the method and the raw params;
// what next returns can be looked at and replaced.
type Middleware func(next Handler) Handler

// Use adds middleware around every handler: of requests and of notifications,
// built-in and custom, initialize included. The first one is the outermost, and
// later calls of Use add inside of earlier ones. Requests that are already running
// are not affected. Middleware that is nil is left out.
//
// What has no handler does not pass it: notifications/cancelled, which is applied where it
// is read, so that nothing can hold a Stop up; responses of the client to nested calls;
// requests that are refused before their turn (an unknown method, a duplicate id, a full or
// draining session, malformed _meta); notifications that nothing is registered for.
//
// initialize runs on the goroutine that reads, since what follows depends
// on it: middleware must not block there.
func (s *Server) Use(middleware ...Middleware) {
	s.change(func(r *registry) {
		for _, m := range middleware {
			if m != nil {
				r.middleware = append(r.middleware, m)
			}
		}
	})
}

func wrap(h Handler, middleware []Middleware) Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}
