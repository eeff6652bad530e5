package gosdk_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake is a transport of a test's own, as a user might write one.
type fake struct {
	connectErr error
	in         chan sdkrpc.Message // closed: end of input
	readErr    error               // what Read returns when in is closed; nil: io.EOF
	out        chan sdkrpc.Message
	writeErr   error
	once       sync.Once
	closed     chan struct{}
}

func newFake() *fake {
	return &fake{in: make(chan sdkrpc.Message, 8), out: make(chan sdkrpc.Message, 64), closed: make(chan struct{})}
}

func (f *fake) Connect(context.Context) (mcp.Connection, error) { return f, f.connectErr }
func (f *fake) SessionID() string                               { return "fake" }

func (f *fake) Read(ctx context.Context) (sdkrpc.Message, error) {
	select {
	case m, ok := <-f.in:
		if ok {
			return m, nil
		}
		if f.readErr != nil {
			return nil, f.readErr
		}
		return nil, io.EOF
	case <-f.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fake) Write(_ context.Context, m sdkrpc.Message) error {
	if f.writeErr != nil {
		return f.writeErr
	}
	f.out <- m
	return nil
}

func (f *fake) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// send sends a request as if it came with what an HTTP transport knows.
func (f *fake) send(t *testing.T, id float64, method, params string, extra *mcp.RequestExtra) {
	t.Helper()
	key, err := sdkrpc.MakeID(id)
	require.NoError(t, err)
	r := &sdkrpc.Request{ID: key, Method: method, Params: []byte(params)}
	if extra != nil {
		r.Extra = extra
	}
	f.in <- r
}

func (f *fake) initialize(t *testing.T) {
	t.Helper()
	f.send(t, 0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}`, nil)
	require.IsType(t, &sdkrpc.Response{}, receive(t, f.out))
}

// waitServer has a tool that waits for its token and tells what it saw.
func waitServer(t *testing.T) (s *gosdk.Server, started chan struct{}, seen chan *cancellation.Error) {
	s = newServer(t)
	started, seen = make(chan struct{}, 1), make(chan *cancellation.Error, 1)
	s.AddTool(&mcp.Tool{Name: "wait", InputSchema: M{"type": "object"}}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		started <- struct{}{}
		<-ctx.Done()
		var e *cancellation.Error
		errors.As(context.Cause(ctx), &e)
		seen <- e
		return nil, ctx.Err()
	})
	return s, started, seen
}

func TestServeEnds(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		end    func(f *fake, stop context.CancelFunc)
		origin cancellation.Origin
		want   error
	}{
		"with its input":     {func(f *fake, _ context.CancelFunc) { close(f.in) }, cancellation.Disconnect, nil},
		"with broken input":  {func(f *fake, _ context.CancelFunc) { f.readErr = broken; close(f.in) }, cancellation.Disconnect, broken},
		"with its context":   {func(_ *fake, stop context.CancelFunc) { stop() }, cancellation.Shutdown, nil},
		"with its transport": {func(f *fake, _ context.CancelFunc) { _ = f.Close() }, cancellation.Disconnect, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, started, seen := waitServer(t)
			f := newFake()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			served := make(chan error, 1)
			go func() { served <- s.Run(ctx, f) }()
			f.initialize(t)
			f.send(t, 1, "tools/call", `{"name":"wait"}`, nil)
			receive(t, started)
			c.end(f, stop)
			assert.Equal(t, c.origin, receive(t, seen).Origin)
			require.ErrorIs(t, receive(t, served), c.want)
			receive(t, f.closed)
			assert.Zero(t, s.Stats().Sessions)
			if c.origin.AnswerOwed() {
				answer := receive(t, f.out).(*sdkrpc.Response)
				require.Contains(t, string(answer.Result), `"isError":true`)
				require.Contains(t, string(answer.Result), "shutdown")
			} else {
				assert.Empty(t, f.out)
			}
		})
	}
}

func TestServeReportsWhatTheTransportCannot(t *testing.T) {
	broken := errors.New("broken")
	require.ErrorIs(t, gosdk.Serve(t.Context(), newServer(t).Server, &fake{connectErr: broken}), broken)

	f := newFake()
	f.writeErr = broken
	served := make(chan error, 1)
	go func() { served <- gosdk.Serve(t.Context(), newServer(t).Server, f) }()
	f.send(t, 1, "ping", `{}`, nil)
	require.ErrorIs(t, receive(t, served), broken)
}

func TestServePassesOnWhatTheTransportKnows(t *testing.T) {
	s := newServer(t)
	type seen struct {
		user, header, session string
		closes                bool
	}
	seens := make(chan seen, 1)
	s.AddTool(&mcp.Tool{Name: "t", InputSchema: M{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 7})
		seens <- seen{req.Extra.TokenInfo.UserID, req.Extra.Header.Get("K"), req.Session.ID(), req.Extra.CloseSSEStream != nil}
		return nil, nil
	})
	f := newFake()
	served := make(chan error, 1)
	go func() { served <- gosdk.Serve(t.Context(), s.Server, f) }()
	f.initialize(t)
	var retry mcp.CloseSSEStreamArgs
	f.send(t, 1, "tools/call", `{"name":"t"}`, &mcp.RequestExtra{
		TokenInfo: &auth.TokenInfo{UserID: "u"}, Header: map[string][]string{"K": {"v"}},
		CloseSSEStream: func(a mcp.CloseSSEStreamArgs) { retry = a },
	})
	assert.Equal(t, seen{"u", "v", "fake", true}, receive(t, seens))
	assert.EqualValues(t, 7, retry.RetryAfter)
	close(f.in)
	require.NoError(t, receive(t, served))
}

// A peer that does not read holds up neither the end nor the cancels.
func TestServeWithAPeerThatDoesNotRead(t *testing.T) {
	s := newServer(t)
	flooding, stopped := make(chan struct{}), make(chan struct{})
	gosdk.MustAddTool(s, &mcp.Tool{Name: "flood"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		defer close(stopped)
		close(flooding)
		for i := 1.; ctx.Err() == nil; i++ {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "t", Progress: i})
		}
		return nil, nil, nil
	})
	f := newFake() // takes 64 messages, and nobody takes them from it
	block := &blocking{fake: f, blocked: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- gosdk.Serve(ctx, s.Server, block) }()
	f.initialize(t)
	f.send(t, 1, "tools/call", `{"name":"flood","_meta":{"progressToken":"t"}}`, nil)
	receive(t, flooding)
	receive(t, block.blocked)
	f.in <- &sdkrpc.Request{Method: "notifications/cancelled", Params: []byte(`{"requestId":1}`)}
	receive(t, stopped) // though its message still waits
	close(f.in)
	require.NoError(t, receive(t, served))
}

// blocking is a fake whose Write ends only with its connection.
type blocking struct {
	*fake
	once    sync.Once
	blocked chan struct{} // closed when a Write waits
}

func (b *blocking) Connect(context.Context) (mcp.Connection, error) { return b, nil }
func (b *blocking) Write(_ context.Context, m sdkrpc.Message) error {
	select {
	case b.out <- m:
		return nil
	default:
		b.once.Do(func() { close(b.blocked) })
	}
	<-b.closed
	return io.ErrClosedPipe
}

func TestOptionsOfBothKinds(t *testing.T) {
	initialized, roots := make(chan string, 1), make(chan string, 1)
	var subscribed []string
	s := gosdk.NewServer(implementation(), &mcp.ServerOptions{
		Instructions: "official", PageSize: 1,
		//lint:ignore SA1019 servers that still set it keep what it does
		HasPrompts: true,
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Experimental: M{"x": M{}}, Extensions: M{"acme/x": M{"a": 1.}},
		},
		InitializedHandler: func(_ context.Context, r *mcp.InitializedRequest) {
			initialized <- r.Session.InitializeParams().ClientInfo.Name
		},
		RootsListChangedHandler: func(_ context.Context, r *mcp.RootsListChangedRequest) { roots <- r.ProtocolVersion() },
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
			subscribed = append(subscribed, "+"+r.Params.URI)
			if r.Params.URI == "test://no" {
				return errors.New("no")
			}
			return nil
		},
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error {
			subscribed = append(subscribed, "-"+r.Params.URI)
			return nil
		},
	}, &server.Options{Instructions: "heed"})
	s.AddResource(&mcp.Resource{Name: "r", URI: "test://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil })
	p := &peer{t: t, version: server.Version20251125, ss: s.Open(t.Context(), server.SessionOptions{})}
	defer p.ss.Close(cancellation.Disconnect, "")
	r := p.request("0", "initialize", M{"protocolVersion": p.version, "capabilities": M{}, "clientInfo": M{"name": "peer", "version": "1"}}).result()
	assert.Equal(t, "heed", r["instructions"])
	assert.Equal(t, M{
		"tools": M{}, "prompts": M{"listChanged": true}, "resources": M{"listChanged": true, "subscribe": true}, "experimental": M{"x": M{}},
	}, r["capabilities"])
	p.notify("notifications/initialized", M{})
	assert.Equal(t, "peer", receive(t, initialized))
	p.notify("notifications/roots/list_changed", M{})
	assert.Equal(t, p.version, receive(t, roots))
	assert.Equal(t, M{"tools": []any{}}, p.request("1", "tools/list", M{}).result())
	assert.Equal(t, M{"prompts": []any{}}, p.request("1", "prompts/list", M{}).result())
	assert.Contains(t, p.request("1", "resources/read", M{"uri": "test://r"}).end(), "no contents")
	p.request("1", "resources/subscribe", M{"uri": "test://r"}).result()
	assert.Contains(t, p.request("1", "resources/subscribe", M{"uri": "test://no"}).end(), `"error"`)
	p.request("1", "resources/unsubscribe", M{"uri": "test://r"}).result()
	assert.Equal(t, []string{"+test://r", "+test://no", "-test://r"}, subscribed)

	discover := newPeer(t, s.Server, server.Version20260728, nil).request("1", "server/discover", M{}).result()
	assert.Equal(t, M{"acme/x": M{"a": 1.}}, discover["capabilities"].(M)["extensions"])
	assert.Panics(t, func() {
		gosdk.NewServer(implementation(), &mcp.ServerOptions{SubscribeHandler: func(context.Context, *mcp.SubscribeRequest) error { return nil }}, nil)
	})
}
