package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Invariants of this file. Each has a test named after it.
//
//	L1  The acknowledgement is the first message of a subscription.
//	L2  Only what was asked for, and is advertised, is sent.
//	L3  Everything that is sent carries the id of its subscription, exactly.
//	L4  A subscriber that does not read holds up nobody: what it has not been
//	    told yet is kept once, however often it happens.
//	L5  A subscription that the client ended is silent; one that the server ends
//	    says so: its result, and on a shared stream a cancel before it.

const methodListen = "subscriptions/listen"

// listenParams are the params of subscriptions/listen.
type listenParams struct {
	Notifications *listenFilter `json:"notifications"`
}

// listenFilter is what a client wants to hear of, and what the server agrees to.
type listenFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitempty"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitempty"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitempty"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitempty"`
}

// maxListenURIs bounds the resources that one subscription may name.
const maxListenURIs = 1024

// handleListen serves subscriptions/listen for as long as the client wants to listen.
//
// Specification: basic/patterns/subscriptions (2026-07-28).
func (s *Server) handleListen(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	var params listenParams
	if err := json.Unmarshal(orObject(req.Params()), &params); err != nil || params.Notifications == nil {
		return nil, invalidParams("params.notifications is required and must be an object")
	}
	if len(params.Notifications.ResourceSubscriptions) > maxListenURIs {
		return nil, invalidParams("params.notifications.resourceSubscriptions has more than %d entries", maxListenURIs)
	}
	if !s.addListener() {
		return nil, &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "too many subscriptions"}
	}
	defer s.removeListener()

	filter := s.honored(c, params.Notifications)
	filter.ResourceSubscriptions = c.grantSubscriptions(ctx, filter.ResourceSubscriptions)
	defer c.revokeSubscriptions(ctx, filter.ResourceSubscriptions)
	sub := newSubscription(filter)
	defer sub.closeFields()
	if err := c.openFields(ctx, sub); err != nil {
		return nil, err
	}
	stop := s.events.subscribe(sub.note)
	defer stop()
	if err := sub.acknowledge(c); err != nil {
		return nil, err
	}
	for {
		select {
		case <-sub.wake:
			if err := sub.flush(ctx, c); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return c.endListen()
		}
	}
}

// orObject is raw, or an empty object for no params at all.
func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// honored is the part of what was asked for that the server has (L2).
func (s *Server) honored(c *Call, asked *listenFilter) *listenFilter {
	capabilities := s.capabilities(c.reg, c.rev)
	f := &listenFilter{
		ToolsListChanged:     asked.ToolsListChanged && capabilities.Tools != nil && capabilities.Tools.ListChanged,
		PromptsListChanged:   asked.PromptsListChanged && capabilities.Prompts != nil && capabilities.Prompts.ListChanged,
		ResourcesListChanged: asked.ResourcesListChanged && capabilities.Resources != nil && capabilities.Resources.ListChanged,
	}
	if capabilities.Resources != nil && capabilities.Resources.Subscribe {
		f.ResourceSubscriptions = asked.ResourceSubscriptions
	}
	return f
}

// endListen ends a subscription that the server ends (L5).
func (c *Call) endListen() (any, error) {
	cancelled := c.source.Requested()
	if cancelled == nil {
		return nil, cancellation.ErrFinished
	}
	if !cancelled.Origin.AnswerOwed() {
		return nil, cancelled
	}
	if !c.session.scope {
		// Other requests share this stream, so its end is no news to the client.
		c.announceEnd(cancelled.Reason)
	}
	return &listenResult{}, nil
}

// announceEnd sends the one cancel that a server of the stateless era may send. It
// follows the cancel it tells of, so it does not pass the gate of Call.send.
func (c *Call) announceEnd(reason string) {
	c.out.Lock()
	defer c.out.Unlock()
	if !c.settled {
		c.sendCancelledOutLocked(c.id, reason)
	}
}

// listenResult is the result of subscriptions/listen.
type listenResult struct{}

func (r *revision) appendListenResult(b []byte, c *Call) []byte {
	o := r.appendHead(b, c, resultComplete, mcp.Meta{mcp.MetaKeySubscriptionID: json.RawMessage(c.id.String())})
	return o.end()
}

// subscription is what one subscriptions/listen is yet to be told.
type subscription struct {
	filter *listenFilter       // what was agreed on; never changed
	uris   map[string]struct{} // the resources in it; never changed
	wake   chan struct{}       // holds a token while something is to be told; capacity 1
	fields []*listening        // what extensions add; never changed once it is acknowledged

	mu      sync.Mutex          // guards the fields below
	changed [3]bool             // lists that changed, by eventKind; set by note, cleared by flush
	updated map[string]struct{} // resources that changed; set by note, cleared by flush
}

func newSubscription(f *listenFilter) *subscription {
	sub := &subscription{filter: f, uris: map[string]struct{}{}, wake: make(chan struct{}, 1)}
	for _, uri := range f.ResourceSubscriptions {
		sub.uris[uri] = struct{}{}
	}
	return sub
}

// note keeps an event for the subscriber, if it asked for such (L4).
func (sub *subscription) note(ev event) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	switch {
	case ev.kind == eventToolsChanged && sub.filter.ToolsListChanged,
		ev.kind == eventPromptsChanged && sub.filter.PromptsListChanged,
		ev.kind == eventResourcesChanged && sub.filter.ResourcesListChanged:
		sub.changed[ev.kind] = true
	case ev.kind == eventResourceUpdated && sub.wants(ev):
		if sub.updated == nil {
			sub.updated = map[string]struct{}{}
		}
		sub.updated[ev.uri] = struct{}{}
	default:
		return
	}
	sub.rouse()
}

// rouse has flush called soon.
func (sub *subscription) rouse() {
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

func (sub *subscription) wants(ev event) bool {
	if _, ok := sub.uris[ev.uri]; ok {
		return true
	}
	for uri := range sub.uris {
		if ev.concerns(uri) {
			return true
		}
	}
	return false
}

// acknowledge tells the client what was agreed on (L1).
func (sub *subscription) acknowledge(c *Call) error {
	filter, err := sub.acknowledged()
	if err != nil {
		return err
	}
	return c.notifySubscriber("notifications/subscriptions/acknowledged", append([]byte(`,"notifications":`), filter...))
}

var changedMethods = [3]string{
	eventToolsChanged:     "notifications/tools/list_changed",
	eventPromptsChanged:   "notifications/prompts/list_changed",
	eventResourcesChanged: "notifications/resources/list_changed",
}

// flush tells the client what has happened.
func (sub *subscription) flush(ctx context.Context, c *Call) error {
	sub.mu.Lock()
	changed, updated := sub.changed, sub.updated
	sub.changed, sub.updated = [3]bool{}, nil
	sub.mu.Unlock()
	var errs []error
	for kind, yes := range changed {
		if yes {
			errs = append(errs, c.notifySubscriber(changedMethods[kind], nil))
		}
	}
	for uri := range updated {
		errs = append(errs, c.notifySubscriber(methodResourceUpdated, jsonrpc.AppendString([]byte(`,"uri":`), uri)))
	}
	for _, l := range sub.fields {
		errs = append(errs, l.flush(ctx, c))
	}
	return errors.Join(errs...)
}

// notifySubscriber sends a notification with the id of the subscription (L3). more
// are further members of its params.
func (c *Call) notifySubscriber(method string, more []byte) error {
	params := append([]byte(`{"_meta":{"`+mcp.MetaKeySubscriptionID+`":`), c.id.String()...)
	params = append(params, '}')
	params = append(params, more...)
	params = append(params, '}')
	return c.notify(method, params)
}

// addListener takes one of the places for subscriptions.
func (s *Server) addListener() bool {
	n := s.counters.listening.Add(1)
	if bound := s.options.MaxSubscriptions; bound > 0 && n > int64(bound) {
		s.counters.listening.Add(-1)
		return false
	}
	return true
}

func (s *Server) removeListener() { s.counters.listening.Add(-1) }
