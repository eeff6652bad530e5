package streamable_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Handlers that end, report, ignore their token or are timed out, against clients
// that drop, cancel or wait, at any moment.
func TestInvariant_R1_NothingIsWrittenAfterServeHTTPHasReturned(t *testing.T) {
	f := newFixture(t, &server.Options{Timeout: 3 * time.Millisecond, Grace: time.Millisecond, ProgressInterval: -1})
	server.MustAddTool(f.s, &mcp.Tool{Name: "busy"}, func(_ context.Context, req *servercontext.Request, in struct {
		Rounds int `json:"rounds"`
	}) (string, error) {
		for i := range in.Rounds {
			_ = req.Progress(context.Background(), float64(i+1), 0, "") // whatever became of the request
			if i%3 == 0 {
				<-time.After(time.Duration(rand.IntN(500)) * time.Microsecond)
			}
		}
		return "done", nil
	})
	h := streamable.NewHandler(f.s, &streamable.Options{
		StreamAfter: time.Millisecond, KeepAlive: time.Millisecond,
		BodyTimeout: 20 * time.Microsecond, WriteTimeout: 20 * time.Microsecond, // which some of them meet
	})
	defer func() { _ = h.Close() }()
	welcome := newGuard()
	h.ServeHTTP(welcome, classic(0, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}}).request(t.Context(), 1))
	id := welcome.header.Get("Mcp-Session-Id")
	require.NotEmpty(t, id)

	var wg sync.WaitGroup
	for i := range 250 {
		wg.Go(func() {
			params := M{"name": "busy", "arguments": M{"rounds": rand.IntN(12)}, "_meta": progress(i)}
			c := modern(i, "tools/call", params)
			if i%2 == 0 {
				c = classic(i, "tools/call", params).with("Mcp-Session-Id", id)
			}
			if i%5 == 0 {
				c = c.with("Accept", "application/json")
			}
			ctx, drop := context.WithCancel(t.Context())
			defer drop()
			switch rand.IntN(3) {
			case 0:
				time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, drop)
			case 1:
				time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, func() {
					h.ServeHTTP(newGuard(), cancelOf(i, "r").with("Mcp-Session-Id", id).request(context.Background(), 1))
				})
			}
			g := newGuard()
			h.ServeHTTP(g, c.request(ctx, 1+i%2))
			g.returned.Store(true)
			t.Cleanup(func() {
				assert.Zerof(t, g.late.Load(), "%d: used after the return", i)
				assert.Zerof(t, g.overlaps.Load(), "%d: writes overlap", i)
			})
		})
	}
	wg.Wait()
	require.NoError(t, f.s.Drain(t.Context())) // until the last handler has returned
}

func TestInvariant_R2_ADroppedResponseCancels(t *testing.T) {
	for _, major := range []int{1, 2} {
		for name, accept := range forms {
			for _, mode := range []streamable.Response{streamable.Auto, streamable.JSON, streamable.Stream} {
				bubble.Test(t, func(t *testing.T) {
					f := newFixture(t, nil)
					h := streamable.NewHandler(f.s, &streamable.Options{Response: mode})
					ctx, drop := context.WithCancel(t.Context())
					done := make(chan struct{})
					go func() {
						defer close(done)
						h.ServeHTTP(newGuard(), modernTool(1, "wait", M{"tag": "a"}).with("Accept", accept).request(ctx, major))
					}()
					f.begun("a")
					time.Sleep(time.Second)
					drop()
					f.next("a")
					<-done
					require.False(t, (<-f.done).Answered, "%s %d", name, mode)
				})
			}
		}
	}
}

func TestInvariant_R3_OnlyThoseWhoAcceptStreamsGetOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		for name, o := range map[string]*streamable.Options{"auto": nil, "json": {Response: streamable.JSON}, "stream": {Response: streamable.Stream}} {
			e := serve(t, f.s, o)
			in := e.initialize(server.Version20251125, nil)
			params := M{"name": "echo", "arguments": M{"text": "x", "progress": 3}, "_meta": progress(1)}
			for _, a := range []answer{
				e.do(modern(1, "tools/call", params).with("Accept", "application/json")),
				in.do(classic(1, "tools/call", params).with("Accept", "application/json")),
			} {
				require.Equal(t, "application/json", a.header.Get("Content-Type"), name)
				require.Zero(t, a.code(t))
			}
			for _, a := range []answer{
				e.do(modernTool(1, "echo", M{"text": "x"}).with("Accept", "text/event-stream")),
				in.do(classicTool(1, "echo", M{"text": "x"}).with("Accept", "text/event-stream")),
			} {
				require.Equal(t, "text/event-stream", a.header.Get("Content-Type"), name)
				require.Zero(t, a.code(t))
			}
		}
	})
}

func TestInvariant_R4_NothingFollowsASilence(t *testing.T) {
	for range 10 {
		bubble.Test(t, func(t *testing.T) {
			f := newFixture(t, &server.Options{ProgressInterval: -1})
			server.MustAddTool(f.s, &mcp.Tool{Name: "flood"}, func(_ context.Context, req *servercontext.Request, _ struct{}) (string, error) {
				for i := range 500 {
					_ = req.Progress(context.Background(), float64(i+1), 0, "")
				}
				return "done", nil
			})
			h := streamable.NewHandler(f.s, nil)
			ctx, drop := context.WithCancel(t.Context())
			g := newGuard()
			at := make(chan int, 1)
			stop := context.AfterFunc(ctx, func() {})
			defer stop()
			go func() {
				for i := 0; i < 100_000 && g.written() < 5; i++ {
					time.Sleep(time.Nanosecond)
				}
				drop()
				synctest.Wait()
				at <- g.written()
			}()
			h.ServeHTTP(g, modern(1, "tools/call", M{"name": "flood", "arguments": M{}, "_meta": progress(1)}).request(ctx, 2))
			<-f.done
			require.LessOrEqual(t, g.written(), <-at)
		})
	}
}
