package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The revision asked for, if it is served and has a handshake, else the newest that has one.
func TestInitialize_Negotiation(t *testing.T) {
	handshakes := server.Versions()[1:]
	for name, tt := range map[string]struct {
		serve []string
		asked any
		want  string // "": refused
		code  int64
	}{
		"2024-11-05":      {nil, server.Version20241105, server.Version20241105, 0},
		"2025-03-26":      {nil, server.Version20250326, server.Version20250326, 0},
		"2025-06-18":      {nil, server.Version20250618, server.Version20250618, 0},
		"2025-11-25":      {nil, server.Version20251125, server.Version20251125, 0},
		"stateless":       {nil, server.Version20260728, server.Version20251125, 0},
		"future":          {nil, "2099-01-01", server.Version20251125, 0},
		"past":            {nil, "1900-01-01", server.Version20251125, 0},
		"empty":           {nil, "", server.Version20251125, 0},
		"narrowed":        {handshakes[2:], server.Version20251125, server.Version20250326, 0},
		"narrowed, order": {[]string{server.Version20241105, server.Version20250618}, "x", server.Version20250618, 0},
		"missing":         {nil, nil, "", sdkrpc.CodeInvalidParams},
		"number":          {nil, 20251125, "", sdkrpc.CodeInvalidParams},
		"stateless only":  {[]string{server.Version20260728}, server.Version20251125, "", mcp.CodeUnsupportedProtocolVersion},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWith(t, &server.Options{Versions: tt.serve, Instructions: "how to"}, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
				params := M{"capabilities": M{}, "clientInfo": M{"name": "c", "version": "1"}}
				if tt.asked != nil {
					params["protocolVersion"] = tt.asked
				}
				p.Request(1, "initialize", params)
				m := p.Answer(1)
				require.EqualValues(t, tt.code, m.Code(), m.Raw)
				require.Equal(t, tt.want, p.ss.InitializeVersion())
				if tt.want == "" {
					if tt.code == mcp.CodeUnsupportedProtocolVersion {
						require.JSONEq(t, `{"supported":["2026-07-28"],"requested":"2025-11-25"}`, string(m.Error.Data))
					}
					p.Request(2, "ping", nil)
					p.Answer(2)
					return
				}
				r := p.Result(1)
				require.Equal(t, tt.want, r["protocolVersion"])
				require.Equal(t, "how to", r["instructions"])
				require.Equal(t, M{"name": "fixture", "version": "1.0.0"}, r["serverInfo"])
				require.Contains(t, r["capabilities"], "tools")
				require.NotContains(t, r, "resultType")
			})
		})
	}
}

// Before the handshake there is ping and initialize; a second initialize is refused.
func TestInitialize_Order(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
		for _, method := range []string{"tools/list", "tools/call", "logging/setLevel", "no/such", "acme/x"} {
			p.Request(1, method, nil)
			require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.Answer(1).Code(), method)
		}
		p.Request(2, "ping", nil)
		require.Empty(t, p.Result(2))
		require.Nil(t, p.Initialize(server.Version20250618).Error)
		p.Request(3, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.Answer(3).Code())
		require.Equal(t, server.Version20250618, p.ss.InitializeVersion())
		p.Request(4, "tools/list", nil)
		require.Nil(t, p.Answer(4).Error)
	})
}

// initialize cannot be cancelled: not by its id, not by the session's cancels, not by a limit.
func TestInitialize_CannotBeCancelled(t *testing.T) {
	inBubbleWith(t, &server.Options{Timeout: time.Millisecond, MaxTimeout: time.Millisecond}, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
		f.Server.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				if req.Method() == "initialize" {
					p.Cancel("init", "stop")
					assert.False(t, p.ss.Cancel(`"init"`, 0, ""))
					time.Sleep(time.Second)
					assert.NoError(t, ctx.Err())
					assert.False(t, req.Cancelled())
				}
				return next(ctx, req)
			}
		})
		require.Nil(t, p.Initialize(server.Version20251125).Error)
		require.Empty(t, f.InFlight())
	})
}

func TestInitialize_MalformedParams(t *testing.T) {
	for name, params := range map[string]M{
		"clientInfo":      {"clientInfo": "x"},
		"clientInfo null": {"clientInfo": nil},
		"name":            {"clientInfo": M{"name": 7}},
		"capabilities":    {"capabilities": []int{}},
		"sampling":        {"capabilities": M{"sampling": 7}},
		"roots":           {"capabilities": M{"roots": "x"}},
		"roots array":     {"capabilities": M{"roots": []int{}}},
		"deep":            {"capabilities": M{"roots": M{"listChanged": "yes"}}},
		"extensions":      {"capabilities": M{"extensions": "x"}},
		"icons":           {"clientInfo": M{"name": "c", "icons": M{}}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWith(t, nil, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
				params["protocolVersion"] = server.Version20251125
				p.Request(1, "initialize", params)
				m := p.Answer(1)
				require.EqualValues(t, sdkrpc.CodeInvalidParams, m.Code())
				require.Contains(t, m.Error.Message, "must be", "it says what is wrong")
				for _, internal := range []string{"mcp.", "Go ", "json:", "struct", "Capabilities"} {
					require.NotContains(t, m.Error.Message, internal, "and nothing of how it is read")
				}
				require.Empty(t, p.ss.InitializeVersion(), "it may try again")
				require.Nil(t, p.Initialize(server.Version20251125).Error)
			})
		})
	}
	inBubbleWith(t, nil, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
		p.Request(1, "initialize", M{"protocolVersion": server.Version20251125})
		require.Nil(t, p.Answer(1).Error, "a client that says nothing about itself is served")
	})
}

// A failing or panicking middleware leaves the session without a handshake.
func TestInitialize_MiddlewareFails(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
		n := 0
		f.Server.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				if n++; n == 1 {
					panic(handlerSecret)
				}
				if n == 2 {
					return nil, &sdkrpc.Error{Code: -31000, Message: "not you"}
				}
				return next(ctx, req)
			}
		})
		for _, code := range []int64{sdkrpc.CodeInternalError, -31000} {
			p.Request("init", "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
			require.EqualValues(t, code, p.Answer("init").Code())
			require.Empty(t, p.ss.InitializeVersion())
		}
		require.Nil(t, p.Initialize(server.Version20251125).Error)
	})
}

// Two handshakes at once, as POSTs may be: one of them settles the session.
func TestInitialize_TwoAtOnce(t *testing.T) {
	for range 60 {
		f := newFixture(t, nil)
		ss := f.Open(t.Context(), server.SessionOptions{Unordered: true})
		codes := make(chan int, 2)
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`,
		} {
			go ss.Receive([]byte(line), answerFunc(func(_ []byte, code int) { codes <- code }), nil, nil)
		}
		a, b := <-codes, <-codes
		require.Equal(t, int(sdkrpc.CodeInvalidRequest), min(a, b))
		require.Zero(t, max(a, b))
		ss.Close(0, "")
	}
}

// What the handshake said about the client is there for handlers of all revisions.
func TestClient_IsKnownToHandlers(t *testing.T) {
	for _, version := range server.Versions() {
		t.Run(version, func(t *testing.T) {
			inBubbleWith(t, nil, peerOptions{Version: version, Caps: M{"roots": M{"listChanged": true}, "extensions": M{"com.example/a.b": M{}}}}, func(t *testing.T, f *fixture, p *peer) {
				f.tool("who", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
					assert.Equal(t, "peer", req.ClientInfo().Name)
					assert.True(t, req.HasClientCapability("roots"))
					assert.True(t, req.HasClientCapability("roots.listChanged"))
					assert.True(t, req.HasClientCapability("extensions.com.example/a.b"))
					assert.False(t, req.HasClientCapability("sampling"))
					assert.True(t, req.ClientCapabilities().RootsV2.ListChanged)
					assert.Equal(t, version, req.ProtocolVersion())
					assert.Equal(t, version == server.Version20260728, req.Stateless())
					return nil, nil
				})
				p.Call(1, "who", nil)
				p.Text(1)
			})
		})
	}
}

func TestSessionOptions_Version(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		for version, want := range map[string]string{server.Version20250326: server.Version20250326, server.Version20260728: "", "x": "", "": ""} {
			ss := f.Open(t.Context(), server.SessionOptions{Version: version})
			require.Equal(t, want, ss.InitializeVersion())
			answers := make(chan int, 1)
			ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), answerFunc(func(_ []byte, code int) { answers <- code }), nil, nil)
			require.Equal(t, want != "", <-answers == 0, version)
			ss.Close(0, "")
		}
	})
}

// A server needs a name. A version it may go without: the schema wants a text, of any length.
func TestNew_Implementation(t *testing.T) {
	for _, nameless := range []*mcp.Implementation{nil, {}, {Version: "1", Title: "t"}} {
		_, err := server.TryNew(nameless, nil)
		require.EqualError(t, err, "server: the implementation needs a name")
		require.Panics(t, func() { server.New(nameless, nil) })
	}
	p := newPeer(t, server.New(&mcp.Implementation{Name: "s"}, nil), peerOptions{Raw: true})
	p.Initialize(server.Version20251125)
	require.Equal(t, M{"name": "s", "version": ""}, p.Result("init")["serverInfo"])
}
