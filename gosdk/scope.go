package gosdk

import (
	"context"
	"sync"
	"time"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Invariants of this file. Each has a test named after it.
//
//	G1  All official code that serves one request sees one session and one Extra.
//	G2  A session acts for its request from the moment official code gets it until
//	    that code has returned, and for no other request at the same time.

// scope is what official code shares while it serves one request. It is made by
// enter and never changed.
type scope struct {
	request   *servercontext.Request
	prototype *prototype
	session   *mcp.ServerSession
	extra     *mcp.RequestExtra
	sending   *chain // what session calls pass through; nil: nothing
}

type scopeKey struct{}

// scopes are the scopes of running requests by their session: *mcp.ServerSession → *scope.
var scopes sync.Map

// enter returns the scope of the request that ctx belongs to, and a context to
// find it by. leave must be called when the official code has returned.
func enter(ctx context.Context, req *servercontext.Request) (context.Context, *scope, func(), error) {
	return enterSending(ctx, req, nil)
}

// enterSending is enter with a chain for session calls, which holds if there is no
// scope yet.
func enterSending(ctx context.Context, req *servercontext.Request, sending *chain) (_ context.Context, _ *scope, leave func(), _ error) {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok && s.request.Token() == req.Token() {
		return ctx, s, func() {}, nil // an outer middleware has entered
	}
	p, err := prototypeFor(req)
	if err != nil {
		return nil, nil, nil, err
	}
	s := &scope{request: req, prototype: p, session: p.copy(), extra: extraOf(req), sending: sending}
	scopes.Store(s.session, s)
	return context.WithValue(ctx, scopeKey{}, s), s, func() { scopes.Delete(s.session) }, nil
}

// scopeOf returns the scope of the request that a call on ss acts for, nil when
// there is none: the one that ss was made for, or, when that has ended, the one that ctx
// belongs to if it is of the same client.
func scopeOf(ctx context.Context, ss *mcp.ServerSession) *scope {
	if v, ok := scopes.Load(ss); ok {
		return v.(*scope)
	}
	later, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok || later.prototype.params == nil || ss.InitializeParams() != later.prototype.params {
		return nil
	}
	if _, running := scopes.Load(later.session); !running {
		return nil
	}
	return later
}

// extraOf is what the transport knows about a request. Unlike the official SDK's
// it is never nil.
func extraOf(req *servercontext.Request) *mcp.RequestExtra {
	extra := &mcp.RequestExtra{TokenInfo: req.TokenInfo(), Header: req.Header()}
	if req.Header() != nil && !req.Stateless() {
		extra.CloseSSEStream = func(a mcp.CloseSSEStreamArgs) {
			_ = req.CloseStream(max(a.RetryAfter, time.Duration(0))) // the official call has no error
		}
	}
	return extra
}
