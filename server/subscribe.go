package server

import (
	"context"
	"slices"
	"sync"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// SubscriptionHook is called when a client starts or stops to watch a resource. It may
// block, and carries the token of the request that it is called for.
type SubscriptionHook func(ctx context.Context, req *servercontext.Request, uri string) error

// OnSubscribe has hook called before a client's subscription to a resource is
// granted; an error refuses it. With a hook, clients may subscribe to any URI that
// it grants; without one (nil) to the resources that can be read.
//
// Specification: server/resources, subscriptions.
func (s *Server) OnSubscribe(hook SubscriptionHook) {
	s.change(func(r *registry) { r.hooks.subscribe = hook })
}

// OnUnsubscribe has hook called once for every subscription that was granted,
// when the client ends it or is gone; in the second case the request is not one of the
// client's. What it returns goes to the client that asked for it, but the
// subscription has ended anyway.
func (s *Server) OnUnsubscribe(hook SubscriptionHook) {
	s.change(func(r *registry) { r.hooks.unsubscribe = hook })
}

// subscriptions are the resources that a handshake-era session watches. The zero
// value has none.
type subscriptions struct {
	mu    sync.Mutex           // guards the fields below; no lock is taken while it is held
	uris  map[string]*watching // written by subscribe and unsubscribe
	ended bool                 // set once, by end
}

// watching is one subscription.
type watching struct {
	settled chan struct{} // closed when the hook has decided
	granted bool          // what it decided; set before settled is closed
}

// wants tells whether the session watches a resource that e is about.
func (w *subscriptions) wants(e event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.uris[e.uri]; ok {
		return true
	}
	for uri := range w.uris {
		if e.concerns(uri) {
			return true
		}
	}
	return false
}

// reserve notes that a hook is about to decide on uri. It returns the
// subscription, and whether it is a new one; nil when there are too many.
func (w *subscriptions) reserve(uri string, bound int) (sub *watching, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sub := w.uris[uri]; sub != nil {
		return sub, false
	}
	if w.ended || bound > 0 && len(w.uris) >= bound {
		return nil, false
	}
	if w.uris == nil {
		w.uris = map[string]*watching{}
	}
	sub = &watching{settled: make(chan struct{})}
	w.uris[uri] = sub
	return sub, true
}

// settle notes what the hook decided. It reports whether the subscription
// stands: the session may have ended meanwhile.
func (w *subscriptions) settle(uri string, sub *watching, granted bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !granted || w.ended {
		granted = false
		if w.uris[uri] == sub {
			delete(w.uris, uri)
		}
	}
	sub.granted = granted
	close(sub.settled)
	return granted
}

// take ends the subscription to uri, nil when there is none.
func (w *subscriptions) take(uri string) *watching {
	w.mu.Lock()
	defer w.mu.Unlock()
	sub := w.uris[uri]
	delete(w.uris, uri)
	return sub
}

// end ends all subscriptions and returns the ones that were granted.
func (w *subscriptions) end() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	var granted []string
	for uri, sub := range w.uris {
		if sub.granted {
			granted = append(granted, uri)
		}
	}
	w.uris = nil
	return granted
}

// grantSubscription asks whether the request may watch uri.
func (c *Call) grantSubscription(ctx context.Context, uri string) error {
	hook := c.reg.hooks.subscribe
	if f := c.findResource(ctx, uri); f == nil {
		r := c.reg.resources[uri]
		if hook == nil || r != nil || !c.seesResource(ctx, uri, nil) {
			return ResourceNotFound(uri)
		}
	}
	if hook == nil {
		return nil
	}
	return hook(ctx, c.request, uri)
}

// grantSubscriptions returns those of uris that the request may watch, each once.
// Every one of them is to be revoked.
func (c *Call) grantSubscriptions(ctx context.Context, uris []string) (granted []string) {
	for _, uri := range uris {
		if slices.Contains(granted, uri) || len(uri) > maxURI || ctx.Err() != nil {
			continue
		}
		if err := c.grantSubscription(ctx, uri); err != nil {
			c.log().Debug("subscription refused", "uri", bounded(uri), "error", err)
			continue
		}
		granted = append(granted, uri)
	}
	return granted
}

// revokeSubscriptions tells the hook that subscriptions have ended, without waiting for it.
func (c *Call) revokeSubscriptions(ctx context.Context, uris []string) {
	if len(uris) == 0 || c.server.current().hooks.unsubscribe == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		for _, uri := range uris {
			c.session.revoke(ctx, c.request, uri)
		}
	}()
}

// revokeSubscription tells the hook that a subscription has ended.
func (s *Server) revokeSubscription(ctx context.Context, req *servercontext.Request, uri string) error {
	if hook := s.current().hooks.unsubscribe; hook != nil {
		return hook(ctx, req, uri)
	}
	return nil
}

// handleSubscribe serves resources/subscribe.
func handleSubscribe(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	uri, err := uriOf(req.Params())
	if err != nil {
		return nil, err
	}
	for {
		sub, fresh := c.session.watched.reserve(uri, c.server.options.MaxWatched)
		if sub == nil {
			return nil, &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "too many subscriptions"}
		}
		if fresh {
			return nil, c.subscribe(ctx, uri, sub)
		}
		select {
		case <-sub.settled:
			if sub.granted {
				return nil, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (c *Call) subscribe(ctx context.Context, uri string, sub *watching) error {
	settled := false
	defer func() { // also when the hook panics
		if !settled {
			c.session.watched.settle(uri, sub, false)
		}
	}()
	if err := c.grantSubscription(ctx, uri); err != nil {
		return err
	}
	err := cancellation.Checkpoint(ctx)
	if err == nil {
		settled = true
		if c.session.watched.settle(uri, sub, true) {
			return nil
		}
		err = ErrClosed
	}
	if hookErr := c.server.revokeSubscription(ctx, c.request, uri); hookErr != nil {
		c.log().Error("unsubscribe hook failed", "error", hookErr)
	}
	return err
}

// handleUnsubscribe serves resources/unsubscribe. To end what was never begun is
// no error.
func handleUnsubscribe(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	uri, err := uriOf(req.Params())
	if err != nil {
		return nil, err
	}
	sub := c.session.watched.take(uri)
	if sub == nil {
		return nil, nil
	}
	select {
	case <-sub.settled:
	case <-ctx.Done():
		go func() { // it has ended all the same, and is revoked as soon as it was granted
			<-sub.settled
			if sub.granted {
				c.session.revoke(context.WithoutCancel(ctx), req, uri)
			}
		}()
		return nil, context.Cause(ctx)
	}
	if !sub.granted {
		return nil, nil
	}
	return nil, c.server.revokeSubscription(ctx, req, uri)
}

// endSubscriptions ends what a session watched that has ended itself.
func (ss *Session) endSubscriptions() {
	granted := ss.watched.end()
	if len(granted) == 0 || ss.server.current().hooks.unsubscribe == nil {
		return
	}
	req := servercontext.New(servercontext.Options{Session: ss.values})
	ctx := servercontext.NewContext(ss.context, req)
	go func() { // hooks may block, whoever closes the session must not
		for _, uri := range granted {
			ss.revoke(ctx, req, uri)
		}
	}()
}

// revoke calls the hook for a subscription that nobody asked to end, and
// contains its panics.
func (ss *Session) revoke(ctx context.Context, req *servercontext.Request, uri string) {
	logger := ss.server.options.Logger
	defer func() {
		if p := recover(); p != nil {
			logger.Error("unsubscribe hook panicked", "panic", p, "session", ss.ID(), "uri", bounded(uri))
		}
	}()
	if err := ss.server.revokeSubscription(ctx, req, uri); err != nil {
		logger.Error("unsubscribe hook failed", "error", err, "session", ss.ID(), "uri", bounded(uri))
	}
}
