package streamable_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// guard is a ResponseWriter that notices what it must not be used for.
type guard struct {
	header http.Header

	using    atomic.Int32 // writes going on
	returned atomic.Bool  // ServeHTTP has returned
	overlaps atomic.Int32 // writes while another was going on
	late     atomic.Int32 // uses after the return

	mu     sync.Mutex
	status int
	body   strings.Builder
	writes int
}

func newGuard() *guard { return &guard{header: http.Header{}} }

func (g *guard) use() func() {
	if g.returned.Load() {
		g.late.Add(1)
	}
	if g.using.Add(1) > 1 {
		g.overlaps.Add(1)
	}
	return func() { g.using.Add(-1) }
}

func (g *guard) Header() http.Header {
	if g.returned.Load() {
		g.late.Add(1)
	}
	return g.header
}

func (g *guard) WriteHeader(status int) {
	defer g.use()()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status = status
}

func (g *guard) Write(b []byte) (int, error) {
	defer g.use()()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	return g.body.Write(b)
}

func (g *guard) FlushError() error {
	defer g.use()()
	return nil
}

func (g *guard) Flush()                           { defer g.use()() }
func (g *guard) SetWriteDeadline(time.Time) error { return nil }

func (g *guard) written() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes
}

// request makes the http.Request of a call for a handler that is called directly.
func (c call) request(ctx context.Context, major int) *http.Request {
	r, err := http.NewRequestWithContext(ctx, c.method, "http://mem.example/mcp", strings.NewReader(c.body))
	if err != nil {
		panic(err)
	}
	r.Header = c.header
	r.ProtoMajor = major
	return r
}

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
	h := streamable.NewHandler(f.s, &streamable.Options{StreamAfter: time.Millisecond, KeepAlive: time.Millisecond})
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

func TestInvariant_H1_TheStreamOfACancelledRequestEndsAndStaysSilent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		store := streamable.NewRingStore(0)
		in := session(t, f, &streamable.Options{EventStore: store})
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		prime := w.next()
		begin := time.Now()
		in.accept(cancelOf(1, "r"))
		require.Empty(t, w.end())
		require.Zero(t, time.Since(begin))
		synctest.Wait()
		require.Zero(t, store.Size())
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(prime.id)).status)
		close(f.release)
		<-f.done
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(prime.id)).status)
		require.Zero(t, store.Size())
	})
}

// The cancel of a request whose client is away.
func TestInvariant_H1_HoldsWithoutAConnectionToo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		store := streamable.NewRingStore(0)
		in := session(t, f, &streamable.Options{EventStore: store})
		w := in.open(classicTool(1, "wait", M{"tag": "a"}))
		prime := w.next()
		w.drop()
		synctest.Wait()
		in.accept(cancelOf(1, "r"))
		f.next("a")
		synctest.Wait()
		require.Zero(t, store.Size())
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(prime.id)).status)
	})
}

func TestInvariant_H2_ADroppedConnectionCancelsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		for name, accept := range forms {
			cancel, done := in.inBackground(classicTool(name, "ignore", M{"tag": "a"}).with("Accept", accept))
			f.begun("a")
			cancel()
			<-done
		}
		time.Sleep(time.Hour)
		f.untouched("a")
		close(f.release)
		for range 2 {
			d := <-f.done
			require.False(t, d.Cancelled)
			require.NoError(t, d.Err)
		}
	})
}

func TestInvariant_H3_ANewerConnectionReplacesTheOlder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		in := session(t, f, nil)
		w := in.open(stepsCall(1))
		prime := w.next()
		again := in.open(resumeAt(prime.id)) // while the first is still there
		require.Empty(t, w.end())
		again.next() // an id of this connection's own
		next <- 1
		require.Contains(t, again.next().data, "progress")
		close(next)
		require.Len(t, messages(t, again.end()), 1)
	})
}

// A connection that nobody reads from does not keep its client from coming back.
func TestInvariant_H3_EvenIfTheOlderIsStuck(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{ProgressInterval: -1})
		next := steps(f)
		in := session(t, f, nil)
		resp, err := in.send(stepsCall(1))
		require.NoError(t, err) // and then nothing is read
		stuck := make(chan struct{})
		go func() {
			defer close(stuck)
			for i := range 20 {
				next <- i + 1
			}
			close(next)
		}()
		time.Sleep(time.Second)
		begin := time.Now()
		again := in.open(resumeAt("1-0"))
		require.Zero(t, time.Since(begin))
		require.Len(t, messages(t, again.end()), 21)
		<-stuck
		require.NoError(t, resp.Body.Close())
	})
}

// gateStore holds up what is appended until it is let through.
type gateStore struct {
	mcp.EventStore
	gate chan struct{}
}

func (s *gateStore) Append(ctx context.Context, session, stream string, data []byte) error {
	<-s.gate
	return s.EventStore.Append(ctx, session, stream, data)
}

func TestInvariant_H4_EventsAreStoredBeforeTheyAreWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		store := &gateStore{streamable.NewRingStore(0), make(chan struct{})}
		in := session(t, f, &streamable.Options{EventStore: store})
		opened := make(chan *flow, 1)
		go func() { opened <- in.open(stepsCall(1)) }()
		next <- 1
		store.gate <- struct{}{} // the priming event, which goes out with the next one
		synctest.Wait()
		require.Empty(t, opened)
		store.gate <- struct{}{}
		w := <-opened
		w.next()
		require.Contains(t, w.next().data, "progress")
		next <- 2
		synctest.Wait()
		require.Empty(t, w.events)
		store.gate <- struct{}{}
		require.Contains(t, w.next().data, "progress")
		close(store.gate)
		close(next)
		w.end()
	})
}

func TestInvariant_T1_SessionsInUseAreKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{SessionIdle: time.Minute, MaxSessions: 3})
		listening, running := e.initialize(server.Version20251125, nil), e.initialize(server.Version20251125, nil)
		w := listening.open(newCall(http.MethodGet, ""))
		w.next()
		running.open(classicTool(1, "wait", M{"tag": "a"}))
		idle := e.initialize(server.Version20251125, nil)
		synctest.Wait()                                    // until the server has let go of the last request
		other := e.initialize(server.Version20251125, nil) // takes the place of the idle one
		require.Equal(t, http.StatusNotFound, idle.do(classic(1, "ping", nil)).status)
		time.Sleep(time.Hour)
		require.Equal(t, http.StatusNotFound, other.do(classic(1, "ping", nil)).status, "expired")
		require.Equal(t, 200, listening.do(classic(1, "ping", nil)).status)
		require.Equal(t, 200, running.do(classic(2, "ping", nil)).status)
		f.untouched("a")
		w.drop()
		running.accept(cancelOf(1, "r"))
		f.next("a")
		time.Sleep(2*time.Minute + time.Second)
		require.Zero(t, f.s.Stats().Sessions)
	})
}

func TestInvariant_T2_ARemovedSessionIsFoundByNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		for range 50 {
			in := e.initialize(server.Version20251125, nil)
			deleted := make(chan struct{})
			var wg sync.WaitGroup
			for i := range 5 {
				wg.Go(func() {
					a := in.do(classic(i, "ping", nil))
					assert.Contains(t, []int{200, 400, 404}, a.status)
				})
			}
			wg.Go(func() {
				assert.Equal(t, http.StatusNoContent, in.do(newCall(http.MethodDelete, "")).status)
				close(deleted)
			})
			<-deleted
			require.Equal(t, http.StatusNotFound, in.do(classic(9, "ping", nil)).status)
			wg.Wait()
		}
		require.Zero(t, f.s.Stats().Sessions)
	})
}

func TestInvariant_T3_TheLongestUnusedMakesRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{MaxSessions: 3})
		var all []*endpoint
		for range 3 {
			all = append(all, e.initialize(server.Version20251125, nil))
			time.Sleep(time.Second)
		}
		require.Equal(t, 200, all[0].do(classic(1, "ping", nil)).status) // used again
		synctest.Wait()
		e.initialize(server.Version20251125, nil)
		require.Equal(t, []int{200, 404, 200}, statuses(all))
		require.Equal(t, 3, f.s.Stats().Sessions)
	})
}

func statuses(all []*endpoint) (codes []int) {
	for i, e := range all {
		codes = append(codes, e.do(classic(fmt.Sprint("s", i), "ping", nil)).status)
	}
	return codes
}
