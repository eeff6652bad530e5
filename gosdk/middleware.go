package gosdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Invariants of this file. Each has a test named after it.
//
//	M1  A middleware is set up once, however often things are registered.
//	M2  Official handlers get the very request that the innermost middleware passed on.
//	M3  Params and results that middleware leaves alone are the server's own.

// Wrapper is what middleware can be added to: a *server.Server, or a [Server].
type Wrapper interface {
	Use(middleware ...server.Middleware)
}

// Use adds middleware that was written for the official SDK, around every request
// and notification but notifications/cancelled. The first one is the outermost; as
// for server.Server.Use, later calls add inside of earlier ones.
//
// A middleware that passes on another method than it was given, or no result
// and no error for a request, makes the request fail. One that returns an
// error without a code makes a tools/call a protocol error, not a tool error.
func Use(s Wrapper, middleware ...mcp.Middleware) {
	l := newLayer()
	l.wrap(middleware...)
	s.Use(l.middleware)
}

// chain is a handler with middleware around it.
type chain struct {
	mu      sync.RWMutex
	handler mcp.MethodHandler // changed by wrap only, under mu
}

// wrap adds middleware around what is there (M1).
func (c *chain) wrap(middleware ...mcp.Middleware) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(middleware) - 1; i >= 0; i-- {
		c.handler = middleware[i](c.handler)
	}
}

func (c *chain) current() mcp.MethodHandler {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.handler
}

// layer is a chain of official middleware as one Heed middleware.
type layer struct {
	chain
	sending *chain // for the session calls of requests that it is the first to see; nil: none
}

func newLayer() *layer {
	l := &layer{}
	l.handler = l.inner
	return l
}

// middleware is the server.Middleware.
func (l *layer) middleware(next server.Handler) server.Handler {
	return func(ctx context.Context, req *servercontext.Request) (any, error) {
		ctx, s, leave, err := enterSending(ctx, req, l.sending)
		if err != nil {
			return nil, err
		}
		defer leave()
		k := kindOf(req.Method())
		call, ok := ctx.Value(callKey{}).(mcp.Request)
		if !ok || !k.same(call) {
			params, err := k.decode(req)
			if err != nil {
				return nil, err
			}
			call = k.request(s, params)
		}
		x := &exchange{kind: k, request: req, next: next}
		result, err := l.current()(context.WithValue(ctx, exchangeKey{l}, x), req.Method(), call)
		return x.outcome(result, err)
	}
}

// exchangeKey is where a layer finds its exchange.
type exchangeKey struct{ layer *layer }

var errNoResult = errors.New("gosdk: middleware returned neither a result nor an error")

// inner is the innermost handler of a layer: what the server does with the request.
func (l *layer) inner(ctx context.Context, method string, call mcp.Request) (mcp.Result, error) {
	x, ok := ctx.Value(exchangeKey{l}).(*exchange)
	if !ok {
		return nil, errors.New("gosdk: middleware must pass on its context, or one derived from it")
	}
	if method != x.request.Method() {
		return nil, fmt.Errorf("gosdk: middleware must not turn %q into %q", x.request.Method(), method)
	}
	if !x.kind.same(call) {
		return nil, fmt.Errorf("gosdk: middleware passed on a %T for %q", call, method)
	}
	req, err := changed(x.request, x.kind, call.GetParams())
	if err != nil {
		return nil, err
	}
	native, err := x.next(context.WithValue(ctx, callKey{}, call), req)
	return x.view(native, err)
}

// exchange is one request on its way through a layer.
type exchange struct {
	kind    kind
	request *servercontext.Request
	next    server.Handler

	mu    sync.Mutex // guards views: middleware may call next from several goroutines
	views []view     // what middleware was shown
}

func (x *exchange) notification() bool {
	return strings.HasPrefix(x.request.Method(), "notifications/")
}

// outcome turns what the chain returned into what the server takes.
func (x *exchange) outcome(result mcp.Result, err error) (any, error) {
	switch {
	case err != nil && x.request.Method() == "tools/call":
		return nil, protocolError(x.request, err)
	case err != nil:
		return nil, serverError(err)
	case x.notification():
		return nil, nil
	case result == nil:
		return nil, protocolError(x.request, errNoResult)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, v := range x.views {
		if v.shown == result {
			return v.outcome()
		}
	}
	return given(result), nil
}
