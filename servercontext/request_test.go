package servercontext_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A nil Request knows nothing, sends nothing and is never in the way; so is one that
// a test made from nothing.
func TestRequest_NilAndZero(t *testing.T) {
	for name, r := range map[string]*servercontext.Request{"nil": nil, "zero": servercontext.New(servercontext.Options{})} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, r.ID())
			require.Empty(t, r.Method())
			require.Nil(t, r.Params())
			require.Nil(t, r.Meta())
			require.Empty(t, r.TraceContext())
			require.Empty(t, r.ProtocolVersion())
			require.False(t, r.Stateless())
			require.Nil(t, r.ClientInfo())
			require.NotNil(t, r.ClientCapabilities())
			require.False(t, r.HasClientCapability("roots"))
			require.Nil(t, r.Session())
			require.Empty(t, r.Session().ID())
			require.Nil(t, r.TokenInfo())
			require.Nil(t, r.Header())
			require.False(t, r.Cancelled())
			require.NoError(t, r.Token().Err())
			require.Nil(t, r.InputResponses())
			require.Empty(t, r.RequestState())
			r.Log(servercontext.LevelError, "x")
			r.Logger("l").Error("x")
			require.False(t, r.LogEnabled(servercontext.LevelEmergency))
			r.ResourceUpdated("test://a")
			r.SetTimeout(1)
			require.ErrorIs(t, r.CloseStream(0), servercontext.ErrNotSupported)
			require.NoError(t, r.Notify("notifications/acme", nil))
			for _, err := range askEverything(t.Context(), r) {
				require.Error(t, err)
			}
			require.ErrorIs(t, r.Ping(t.Context()), servercontext.ErrNoClient)
			require.ErrorIs(t, r.Call(t.Context(), "acme/x", nil, nil), servercontext.ErrNoClient)
			require.NoError(t, r.Progress(t.Context(), 1, 2, ""))
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(context.DeadlineExceeded)
			require.ErrorIs(t, r.Progress(ctx, 1, 2, ""), context.DeadlineExceeded, "it is a checkpoint at least")
		})
	}
	require.ErrorIs(t, func() error {
		_, err := servercontext.New(servercontext.Options{Client: client(t, all)}).ListRoots(t.Context())
		return err
	}(), servercontext.ErrNoClient)
}

func TestRequest_Facts(t *testing.T) {
	source := cancellation.New(t.Context())
	defer source.Finish()
	session := servercontext.NewSession("s")
	o := servercontext.Options{
		ID: `"a"`, Method: "tools/call", Params: json.RawMessage(`{"a":1}`), Meta: json.RawMessage(`{"com.example/a":1,"traceparent":"t","tracestate":7,"baggage":"b"}`),
		ProtocolVersion: "2026-07-28", Stateless: true, Session: session, TokenInfo: &auth.TokenInfo{UserID: "ann"}, Header: http.Header{"A": {"b"}}, Token: source.Token(),
	}
	r := servercontext.New(o)
	require.Equal(t, `"a"`, r.ID())
	require.Equal(t, "tools/call", r.Method())
	require.JSONEq(t, `{"a":1}`, string(r.Params()))
	require.Equal(t, mcp.Meta{"com.example/a": 1.0, "traceparent": "t", "tracestate": 7.0, "baggage": "b"}, r.Meta())
	require.Equal(t, servercontext.TraceContext{Traceparent: "t", Baggage: "b"}, r.TraceContext())
	require.Equal(t, "2026-07-28", r.ProtocolVersion())
	require.True(t, r.Stateless())
	require.Same(t, session, r.Session())
	require.Equal(t, "ann", r.TokenInfo().UserID)
	require.Equal(t, "b", r.Header().Get("A"))
	require.False(t, r.Cancelled())
	source.Cancel(cancellation.Peer, "stop")
	require.True(t, r.Cancelled())
	h := &host{}
	o.Host = h
	r = servercontext.New(o)
	require.Equal(t, "7", r.ID(), "the host knows which request goes on")
	require.ErrorIs(t, r.Progress(source.Context(), 1, 0, ""), cancellation.ErrCancelled)
	require.NoError(t, r.Progress(context.Background(), 2, 0, ""))
	require.Equal(t, []float64{2}, h.reports)
	require.Nil(t, servercontext.New(servercontext.Options{Meta: json.RawMessage(`{"a":`)}).Meta())
}

func TestRequest_InContext(t *testing.T) {
	r, ok := servercontext.FromContext(t.Context())
	require.False(t, ok)
	require.Nil(t, r)
	require.NoError(t, r.Progress(t.Context(), 1, 0, ""), "and valid")
	want := servercontext.New(servercontext.Options{})
	type key struct{}
	r, ok = servercontext.FromContext(context.WithValue(servercontext.NewContext(t.Context(), want), key{}, 1))
	require.True(t, ok)
	require.Same(t, want, r)
}

// Several goroutines of a handler may ask for what is decoded on demand.
func TestRequest_Concurrent(t *testing.T) {
	r := servercontext.New(servercontext.Options{Meta: json.RawMessage(`{"a":1,"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`)})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			assert.Equal(t, 1.0, r.Meta()["a"])
			assert.True(t, r.HasClientCapability("roots"))
		})
	}
	all.Wait()
}

func TestSession_Values(t *testing.T) {
	type key struct{}
	s := servercontext.NewSession("s")
	_, ok := s.Load(key{})
	require.False(t, ok)
	s.Store(key{}, 1)
	v, ok := s.Load(key{})
	require.True(t, ok)
	require.Equal(t, 1, v)
	s.Delete(key{})
	_, ok = s.Load(key{})
	require.False(t, ok)
	var none *servercontext.Session
	none.Store(key{}, 1)
	none.Delete(key{})
	_, ok = none.Load(key{})
	require.False(t, ok)
}
