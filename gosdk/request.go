package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	segment "github.com/segmentio/encoding/json"
)

// kind makes the official request of one method.
type kind interface {
	// decode decodes params as they were sent.
	decode(req *servercontext.Request) (mcp.Params, error)
	// request puts params into a request of the scope.
	request(s *scope, params mcp.Params) mcp.Request
	// same tells whether a request is one of this kind and has params.
	same(r mcp.Request) bool
}

// paramsOf is a pointer to official params.
type paramsOf[T any] interface {
	*T
	mcp.Params
}

// typed is the kind of requests with params P.
type typed[T any, P paramsOf[T]] struct{}

func (typed[T, P]) decode(req *servercontext.Request) (mcp.Params, error) {
	p := P(new(T))
	if err := decodeParams(req, p); err != nil {
		return nil, err
	}
	return p, nil
}

func (typed[T, P]) request(s *scope, params mcp.Params) mcp.Request {
	return &mcp.ServerRequest[P]{Session: s.session, Params: params.(P), Extra: s.extra}
}

func (typed[T, P]) same(r mcp.Request) bool {
	of, ok := r.(*mcp.ServerRequest[P])
	return ok && of != nil && of.Params != nil
}

var kinds = map[string]kind{
	"initialize":                       typed[mcp.InitializeParams, *mcp.InitializeParams]{},
	"ping":                             typed[mcp.PingParams, *mcp.PingParams]{},
	"server/discover":                  typed[mcp.DiscoverParams, *mcp.DiscoverParams]{},
	"subscriptions/listen":             typed[mcp.SubscriptionsListenParams, *mcp.SubscriptionsListenParams]{},
	"logging/setLevel":                 typed[mcp.SetLoggingLevelParams, *mcp.SetLoggingLevelParams]{},
	"completion/complete":              typed[mcp.CompleteParams, *mcp.CompleteParams]{},
	"tools/list":                       typed[mcp.ListToolsParams, *mcp.ListToolsParams]{},
	"tools/call":                       typed[mcp.CallToolParamsRaw, *mcp.CallToolParamsRaw]{},
	"prompts/list":                     typed[mcp.ListPromptsParams, *mcp.ListPromptsParams]{},
	"prompts/get":                      typed[mcp.GetPromptParams, *mcp.GetPromptParams]{},
	"resources/list":                   typed[mcp.ListResourcesParams, *mcp.ListResourcesParams]{},
	"resources/templates/list":         typed[mcp.ListResourceTemplatesParams, *mcp.ListResourceTemplatesParams]{},
	"resources/read":                   typed[mcp.ReadResourceParams, *mcp.ReadResourceParams]{},
	"resources/subscribe":              typed[mcp.SubscribeParams, *mcp.SubscribeParams]{},
	"resources/unsubscribe":            typed[mcp.UnsubscribeParams, *mcp.UnsubscribeParams]{},
	"notifications/initialized":        typed[mcp.InitializedParams, *mcp.InitializedParams]{},
	"notifications/progress":           typed[mcp.ProgressNotificationParams, *mcp.ProgressNotificationParams]{},
	"notifications/roots/list_changed": typed[mcp.RootsListChangedParams, *mcp.RootsListChangedParams]{},
}

// custom is the kind of methods that the official SDK does not know.
var custom kind = typed[CustomParams, *CustomParams]{}

func kindOf(method string) kind {
	if k, ok := kinds[method]; ok {
		return k
	}
	return custom
}

// CustomParams are the params of a method that the official SDK does not know, as
// middleware sees them.
type CustomParams struct {
	mcp.ParamsBase
	// Raw is the whole params object as sent, without its _meta; nil without any. Middleware
	// may replace it.
	Raw json.RawMessage
}

// MarshalJSON writes the params as a client would.
func (p *CustomParams) MarshalJSON() ([]byte, error) {
	if len(p.Meta) == 0 {
		if len(p.Raw) == 0 {
			return []byte("{}"), nil
		}
		return p.Raw, nil
	}
	members := map[string]json.RawMessage{}
	if len(p.Raw) > 0 {
		if err := json.Unmarshal(p.Raw, &members); err != nil {
			return nil, err
		}
	}
	meta, err := json.Marshal(p.Meta)
	if err != nil {
		return nil, err
	}
	members["_meta"] = meta
	return json.Marshal(members)
}

// decodeParams decodes the params of a request, as the official SDK does: names match
// case-sensitively and missing params are empty ones. What a retry brought is taken
// from where it was verified.
func decodeParams(req *servercontext.Request, into mcp.Params) error {
	raw := req.Params()
	if p, ok := into.(*CustomParams); ok {
		p.Meta = req.Meta()
		p.Raw = without(raw, "_meta")
		return nil
	}
	if len(raw) > 0 {
		if _, err := segment.Parse(without(raw, "inputResponses", "requestState"), into, segment.DontMatchCaseInsensitiveStructFields); err != nil {
			return &sdkrpc.Error{Code: sdkrpc.CodeInvalidParams, Message: fmt.Sprintf("params do not fit %s", req.Method())}
		}
	}
	switch p := into.(type) {
	case *mcp.CallToolParamsRaw:
		p.InputResponses, p.RequestState = req.InputResponses(), req.RequestState()
	case *mcp.GetPromptParams:
		p.InputResponses, p.RequestState = req.InputResponses(), req.RequestState()
	case *mcp.ReadResourceParams:
		p.InputResponses, p.RequestState = req.InputResponses(), req.RequestState()
	case *mcp.InitializeParams:
		info, _ := jsonrpc.Get(raw, "clientInfo")
		capabilities, _ := jsonrpc.Get(raw, "capabilities")
		// The official type cannot tell whether the client has roots; this can.
		if client, err := servercontext.NewClient(info, capabilities); err == nil && len(capabilities) > 0 {
			p.Capabilities = client.Capabilities
		}
	}
	return nil
}

// without returns a JSON object without some of its members; the object itself
// when it has none of them.
func without(obj json.RawMessage, names ...string) json.RawMessage {
	found := false
	for _, name := range names {
		_, ok := jsonrpc.Get(obj, name)
		found = found || ok
	}
	if !found {
		return obj
	}
	b := []byte{'{'}
	for name, value := range jsonrpc.Members(obj) {
		if !slices.Contains(names, name) {
			b = appendMember(b, name, value)
		}
	}
	return append(b, '}')
}

func appendMember(b []byte, name string, value []byte) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = jsonrpc.AppendString(b, name)
	b = append(b, ':')
	return append(b, value...)
}

// callKey is where the context of a request that came through a middleware has the
// official request that the middleware passed on.
type callKey struct{}

// callOf returns the official request for a handler: what middleware passed on, or
// a new one. A request that goes on after its middleware has returned, as a task does,
// gets a session that still acts for it.
func callOf[T any, P paramsOf[T]](ctx context.Context, s *scope, req *servercontext.Request) (*mcp.ServerRequest[P], error) {
	if r, ok := ctx.Value(callKey{}).(*mcp.ServerRequest[P]); ok {
		if r.Session != s.session {
			c := *r
			c.Session = s.session
			r = &c
		}
		return r, nil
	}
	params, err := typed[T, P]{}.decode(req)
	if err != nil {
		return nil, err
	}
	return typed[T, P]{}.request(s, params).(*mcp.ServerRequest[P]), nil
}
