package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// benchReply is the cheapest Reply: it hands on what it is given and keeps nothing.
type benchReply struct {
	onSend func([]byte)
	code   int
	length int
	done   chan struct{} // nil: nobody waits
}

func (r *benchReply) Send(msg []byte) error {
	if r.onSend != nil {
		r.onSend(msg)
	}
	return nil
}

func (r *benchReply) Answer(msg []byte, code int) {
	r.code, r.length = code, len(msg)
	if r.done != nil {
		r.done <- struct{}{}
	}
}

func (r *benchReply) Silence() {
	if r.done != nil {
		r.done <- struct{}{}
	}
}

type echoIn struct {
	Text string `json:"text"`
}

// benchServer has a session that speaks the revision, and no logger or observer that costs.
func benchServer(tb testing.TB, version string) (*server.Server, *server.Session, *peer) {
	s := server.New(&mcp.Implementation{Name: "bench", Version: "1"}, &server.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	server.MustAddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *servercontext.Request, in echoIn) (string, error) {
		return in.Text, nil
	})
	server.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	})
	server.MustAddTool(s, &mcp.Tool{Name: "ping"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
		return "", req.Ping(ctx)
	})
	server.MustAddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
		for i := range 1000 {
			if err := req.Progress(ctx, float64(i), 1000, ""); err != nil {
				return "", err
			}
		}
		return "", nil
	})
	ss := s.Open(tb.Context(), server.SessionOptions{Version: version})
	tb.Cleanup(func() { ss.Close(cancellation.Disconnect, "") })
	return s, ss, &peer{t: tb, version: version, caps: M{}}
}

func run(c *server.Call) { c.Run() }

var eraNames = map[string]string{server.Version20251125: "handshake", server.Version20260728: "stateless"}

// BenchmarkEcho is a call of a typed tool from the scanned line to the encoded
// answer, on the reading goroutine: what the core costs without a transport.
func BenchmarkEcho(b *testing.B) {
	for version, era := range eraNames {
		b.Run(era, func(b *testing.B) {
			_, ss, p := benchServer(b, version)
			line := []byte(p.Line(1, "tools/call", callParams("echo", M{"text": "hello"})))
			r := &benchReply{}
			b.ReportAllocs()
			for b.Loop() {
				ss.Receive(line, r, nil, run)
			}
			require.Zero(b, r.code)
		})
	}
}

// BenchmarkEchoGoroutine is the same with a goroutine for each call, as on stdio.
func BenchmarkEchoGoroutine(b *testing.B) {
	_, ss, p := benchServer(b, server.Version20251125)
	line := []byte(p.Line(1, "tools/call", callParams("echo", M{"text": "hello"})))
	r := &benchReply{done: make(chan struct{}, 1)}
	b.ReportAllocs()
	for b.Loop() {
		ss.Receive(line, r, nil, nil)
		<-r.done
	}
}

// BenchmarkListTools is a list of 100 tools from the cache.
func BenchmarkListTools(b *testing.B) {
	s, ss, p := benchServer(b, server.Version20251125)
	for i := range 100 {
		server.MustAddTool(s, &mcp.Tool{Name: fmt.Sprint("tool", i)}, func(context.Context, *servercontext.Request, echoIn) (string, error) { return "", nil })
	}
	line := []byte(p.Line(1, "tools/list", nil))
	r := &benchReply{}
	b.ReportAllocs()
	for b.Loop() {
		ss.Receive(line, r, nil, run)
	}
	b.SetBytes(int64(r.length))
}

// BenchmarkCancel is a call that waits and its cancel, with others in flight.
func BenchmarkCancel(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			_, ss, p := benchServer(b, server.Version20251125)
			for id := range others {
				ss.Receive([]byte(p.Line(id+10, "tools/call", callParams("wait", nil))), &benchReply{}, nil, nil)
			}
			call := []byte(p.Line(1, "tools/call", callParams("wait", nil)))
			cancel := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"stop"}}`)
			r := &benchReply{done: make(chan struct{}, 1)}
			b.ReportAllocs()
			for b.Loop() {
				ss.Receive(call, r, nil, nil)
				ss.Receive(cancel, nil, nil, nil)
				<-r.done
			}
		})
	}
}

// BenchmarkNestedCall is a call whose handler pings the client once.
func BenchmarkNestedCall(b *testing.B) {
	_, ss, p := benchServer(b, server.Version20251125)
	line := []byte(p.Line(1, "tools/call", callParams("ping", nil)))
	r := &benchReply{done: make(chan struct{}, 1)}
	r.onSend = func(msg []byte) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(msg, &m)
		answer := append(append([]byte(`{"jsonrpc":"2.0","id":`), m.ID...), `,"result":{}}`...)
		go ss.Receive(answer, nil, nil, nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		ss.Receive(line, r, nil, nil)
		<-r.done
	}
}

// BenchmarkProgress is a call with 1000 reports, with and without a token; most are
// merged.
func BenchmarkProgress(b *testing.B) {
	for name, meta := range map[string]M{"token": {"progressToken": 1}, "none": nil} {
		b.Run(name, func(b *testing.B) {
			_, ss, p := benchServer(b, server.Version20251125)
			line := []byte(p.Line(1, "tools/call", callParams("progress", nil, meta)))
			r := &benchReply{}
			b.ReportAllocs()
			for b.Loop() {
				ss.Receive(line, r, nil, run)
			}
		})
	}
}

// echoAllocs is what a typed echo call allocates, from the line to the answer. More
// should be on purpose.
const echoAllocs = 11

func TestEchoAllocations(t *testing.T) {
	for version, era := range eraNames {
		_, ss, p := benchServer(t, version)
		line := []byte(p.Line(1, "tools/call", callParams("echo", M{"text": "hello"})))
		r := &benchReply{}
		got := testing.AllocsPerRun(1000, func() { ss.Receive(line, r, nil, run) })
		require.LessOrEqual(t, got, float64(echoAllocs+slackAllocs), era)
		require.Zero(t, r.code)
	}
}
