package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type slowIn struct {
	Name string `json:"name"`
	N    int    `json:"n,omitempty" jsonschema:"minimum=1,default=3"`
}

type slowOut struct {
	Text string `json:"text"`
}

func slow(_ context.Context, _ *servercontext.Request, in slowIn) (slowOut, error) {
	return slowOut{Text: in.Name}, nil
}

func TestMethod_Custom(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		require.NoError(t, server.AddMethod(f.Server, "acme/slow", slow))
		p.Request(1, "acme/slow", M{"name": "a"})
		r := p.Result(1)
		require.Equal(t, "a", r["text"])
		if !p.handshake() {
			require.Equal(t, "complete", r["resultType"])
			require.Contains(t, r["_meta"], "io.modelcontextprotocol/serverInfo")
		}
		for _, bad := range []M{nil, {}, {"name": 7}, {"name": "a", "n": 0}} {
			p.Request(2, "acme/slow", bad)
			require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(2).Code(), "%v", bad)
		}
		server.MustAddMethod(f.Server, "acme/slow", func(context.Context, *servercontext.Request, slowIn) (slowOut, error) {
			return slowOut{Text: "replaced"}, nil
		})
		p.Request(3, "acme/slow", M{"name": "a"})
		require.Equal(t, "replaced", p.Result(3)["text"])
	})
}

// Whatever a method returns is a JSON object, or an internal error.
func TestMethod_Results(t *testing.T) {
	for name, tt := range map[string]struct {
		result any
		want   string // members that the method gave; "": an error
	}{
		"map":             {M{"a": 1}, `{"a":1}`},
		"nil":             {nil, `{}`},
		"empty":           {struct{}{}, `{}`},
		"raw":             {json.RawMessage("{\n\"a\": \"<b>\"}"), `{"a":"<b>"}`},
		"type of its own": {M{"resultType": "acme"}, `{"resultType":"acme"}`},
		"meta":            {M{"_meta": M{"com.example/a": 1}}, `{"_meta":{"com.example/a":1}}`},
		"empty meta":      {M{"_meta": M{}, "a": 1}, `{"a":1,"_meta":{}}`},
		"nil pointer":     {(*slowOut)(nil), ""},
		"text":            {"x", ""},
		"array":           {[]int{1}, ""},
		"channel":         {make(chan int), ""},
		"panic":           {panicker{}, ""},
		"broken":          {json.RawMessage(`{"a"`), ""},
		"two":             {json.RawMessage(`{} {}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, f *fixture, p *peer) {
				server.MustAddMethod(f.Server, "acme/any", func(context.Context, *servercontext.Request, json.RawMessage) (any, error) { return tt.result, nil })
				p.Request(1, "acme/any", nil)
				m := p.Answer(1)
				if tt.want == "" {
					require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
					return
				}
				got := p.Result(1)
				var want M
				require.NoError(t, json.Unmarshal([]byte(tt.want), &want))
				if !p.handshake() {
					if _, own := want["resultType"]; !own {
						require.Equal(t, "complete", got["resultType"])
						delete(got, "resultType")
					}
					meta := got["_meta"].(M)
					require.Contains(t, meta, "io.modelcontextprotocol/serverInfo")
					delete(meta, "io.modelcontextprotocol/serverInfo")
					if _, own := want["_meta"]; !own {
						delete(got, "_meta")
					}
				}
				require.Equal(t, want, got)
			})
		})
	}
}

func TestMethod_NotificationsHaveNoAnswer(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		got := make(chan slowIn, 10)
		server.MustAddMethod(f.Server, "notifications/acme", func(_ context.Context, req *servercontext.Request, in slowIn) (any, error) {
			assert.Empty(t, req.ID())
			got <- in
			return nil, errOwn
		})
		p.Notify("notifications/acme", M{"name": "a"})
		p.Notify("notifications/acme", M{"name": 7})
		p.Notify("notifications/unknown", nil)
		p.settle()
		require.Len(t, got, 1)
		require.Equal(t, "a", (<-got).Name)
		require.NotEmpty(t, f.logs.Find("notification"), "operators hear of its error")
	})
}

// With an id they are refused, known or not, and do nothing.
func TestCase15_NotificationsWithAnID(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		server.MustAddMethod(f.Server, "notifications/acme", func(context.Context, *servercontext.Request, json.RawMessage) (any, error) {
			f.add("n", "called", nil)
			return nil, nil
		})
		p.Call("wait", "cancel_wait", tagged{Tag: "a"})
		f.Await("a", "started")
		for id, method := range []string{"notifications/cancelled", "notifications/initialized", "notifications/acme", "notifications/unknown", "notifications/"} {
			p.Request(id, method, M{"requestId": "wait"})
			require.EqualValues(t, sdkrpc.CodeMethodNotFound, p.Answer(id).Code(), method)
		}
		p.settle()
		require.Empty(t, f.Events("n"))
		p.Pending("wait")
	})
}

func TestMethod_RegistrationErrors(t *testing.T) {
	f := newFixture(t, nil)
	for _, name := range []string{
		"", "initialize", "ping", "tools/list", "tools/mine", "prompts/x", "resources/x", "logging/x", "completion/x", "sampling/x",
		"elicitation/x", "roots/x", "server/discover", "subscriptions/x", "notifications/cancelled", "notifications/initialized",
		"notifications/progress", "notifications/message", "notifications/tools/list_changed", "notifications/resources/updated",
	} {
		var r *server.RegistrationError
		require.ErrorAs(t, server.AddMethod(f.Server, name, slow), &r, name)
		require.Equal(t, "method", r.Kind)
		require.Panics(t, func() { server.MustAddMethod(f.Server, name, slow) })
	}
	require.Error(t, server.AddMethod[slowIn, any](f.Server, "acme/nil", nil))
	require.Error(t, server.AddMethod(f.Server, "acme/chan", func(context.Context, *servercontext.Request, chan int) (any, error) { return nil, nil }))
	require.Error(t, server.AddMethod(f.Server, "acme/func", func(context.Context, *servercontext.Request, struct{ F func() }) (any, error) { return nil, nil }))
	require.NoError(t, server.AddMethod(f.Server, "acme/any", func(context.Context, *servercontext.Request, any) (any, error) { return nil, nil }))
	require.NoError(t, server.AddMethod(f.Server, "acme/map", func(context.Context, *servercontext.Request, map[string]int) (any, error) { return nil, nil }))
}
