package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// M is a JSON object of a test.
type M = map[string]any

var eras = []string{server.Version20251125, server.Version20260728}

// patience bounds what should happen at once.
const patience = time.Minute

func implementation() *mcp.Implementation { return &mcp.Implementation{Name: "test", Version: "1"} }

func newServer(t testing.TB) *gosdk.Server {
	t.Helper()
	return gosdk.NewServer(implementation(), nil, &server.Options{ProgressInterval: -1, Logger: slog.New(slog.DiscardHandler)})
}

// connect serves s over the official in-memory transport and returns the
// official client. Both have ended when the test has.
func connect(t testing.TB, s *server.Server, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { served <- gosdk.Serve(ctx, s, there) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "2"}, o).Connect(
		t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() {
		defer stop()
		if t.Failed() {
			stop() // the client's Close waits for handlers of its own
		}
		_ = cs.Close()
		require.NoError(t, receive(t, served))
	})
	return cs
}

// receive takes a value that should come at once.
func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// text is the text of a tool result.
func text(t testing.TB, r *mcp.CallToolResult) string {
	t.Helper()
	require.NotEmpty(t, r.Content)
	require.IsType(t, &mcp.TextContent{}, r.Content[0])
	return r.Content[0].(*mcp.TextContent).Text
}

// peer is a client that sees every message, and which request it belongs to.
type peer struct {
	t       testing.TB
	ss      *server.Session
	version string
	extra   *server.Extra
}

func newPeer(t testing.TB, s *server.Server, version string, capabilities M) *peer {
	t.Helper()
	p := &peer{t: t, version: version, ss: s.Open(t.Context(), server.SessionOptions{ID: "session-" + t.Name()})}
	t.Cleanup(func() {
		p.ss.Close(cancellation.Disconnect, "the test is over")
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, p.ss.Wait(ctx))
	})
	if version != server.Version20260728 {
		p.request("0", "initialize", M{"protocolVersion": version, "capabilities": capabilities, "clientInfo": M{"name": "peer", "version": "3"}}).result()
		p.notify("notifications/initialized", M{})
	}
	return p
}

// request sends a request; id is JSON text.
func (p *peer) request(id, method string, params M) *stream {
	p.t.Helper()
	if p.version == server.Version20260728 {
		meta, _ := params["_meta"].(M)
		if meta == nil {
			meta = M{}
		}
		if _, ok := meta[mcp.MetaKeyClientCapabilities]; !ok {
			meta[mcp.MetaKeyClientCapabilities] = M{}
		}
		meta[mcp.MetaKeyProtocolVersion] = p.version
		params["_meta"] = meta
	}
	raw, err := json.Marshal(params)
	require.NoError(p.t, err)
	return p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, raw))
}

func (p *peer) call(id, tool string, arguments, meta M) *stream {
	p.t.Helper()
	params := M{"name": tool, "arguments": arguments}
	if meta != nil {
		params["_meta"] = meta
	}
	return p.request(id, "tools/call", params)
}

func (p *peer) raw(line string) *stream {
	s := &stream{t: p.t, lines: make(chan string, 64), over: make(chan struct{})}
	p.ss.Receive([]byte(line), s, p.extra, nil)
	return s
}

func (p *peer) notify(method string, params M) {
	raw, err := json.Marshal(params)
	require.NoError(p.t, err)
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, raw))
}

func (p *peer) cancel(id, reason string) {
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":%q}}`, id, reason))
}

// stream is the reply of one request.
type stream struct {
	t     testing.TB
	lines chan string   // messages ahead of the answer
	over  chan struct{} // closed at the end

	mu     sync.Mutex
	answer string // written before over is closed; "" for silence
}

func (s *stream) Send(msg []byte) error {
	s.lines <- string(msg)
	return nil
}

func (s *stream) Answer(msg []byte, _ int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = string(msg)
	close(s.over)
}

func (s *stream) Silence() { close(s.over) }

// line is the next message.
func (s *stream) line() string {
	s.t.Helper()
	return receive(s.t, s.lines)
}

// end waits for the answer, "" for silence.
func (s *stream) end() string {
	s.t.Helper()
	receive(s.t, s.over)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer
}

// rest is the messages that were not taken; to be called after end.
func (s *stream) rest() []string {
	all := []string{}
	for len(s.lines) > 0 {
		all = append(all, <-s.lines)
	}
	return all
}

// result is the answer's result.
func (s *stream) result() M {
	s.t.Helper()
	answer := s.end()
	var m struct{ Result M }
	require.NoError(s.t, json.Unmarshal([]byte(answer), &m), answer)
	require.NotNil(s.t, m.Result, answer)
	return m.Result
}
