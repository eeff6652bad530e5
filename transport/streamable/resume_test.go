package streamable_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steps adds a tool that reports progress whenever the test says so, and ends when
// it says no more.
func steps(f *fixture) chan int {
	next := make(chan int)
	server.MustAddTool(f.s, &mcp.Tool{Name: "steps"}, func(ctx context.Context, req *servercontext.Request, in tagged) (string, error) {
		for n := range next {
			if err := req.Progress(ctx, float64(n), 0, ""); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	return next
}

func stepsCall(id any) call {
	return classic(id, "tools/call", M{"name": "steps", "arguments": M{"tag": "a"}, "_meta": progress(id)})
}

func resumeAt(id string) call { return newCall(http.MethodGet, "").with("Last-Event-ID", id) }

// twice gives the event id twice.
func twice(c call) call {
	c.header["Last-Event-Id"] = append(c.header["Last-Event-Id"], c.header["Last-Event-Id"]...)
	return c
}

// An event id that was never issued is refused, whatever has become of its stream.
func TestEventIDsThatWereNeverIssued(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		in := session(t, f, nil)
		refused := func(id string) {
			t.Helper()
			a := in.do(resumeAt(id))
			require.Equal(t, http.StatusBadRequest, a.status)
			require.Contains(t, a.body, "Last-Event-ID was not issued")
		}
		w := in.open(stepsCall(1))
		prime := w.next()
		require.Equal(t, "1-0", prime.id)
		refused("1-1")
		next <- 1
		one := w.next()
		refused("1-2")
		require.Equal(t, http.StatusBadRequest, in.do(twice(resumeAt(one.id))).status)
		close(next)
		last := w.next()
		require.Empty(t, w.end())
		require.Equal(t, "1-2", last.id)
		refused("1-3")
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(last.id)).status, "nothing follows")
		require.Len(t, in.do(resumeAt(one.id)).events(t), 1)
		refused("2-0")

		refused("0-0")
		listening := in.open(newCall(http.MethodGet, ""))
		first := listening.next()
		refused("0-1")
		listening.drop()
		synctest.Wait()
		in.open(resumeAt(first.id)).drop()
	})
}

func TestPrimingByRevision(t *testing.T) {
	for version, primed := range map[string]bool{server.Version20251125: true, server.Version20250618: false, server.Version20250326: false} {
		bubble.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			in := serve(t, f.s, nil).initialize(version, nil)
			events := in.do(classic(1, "tools/call", M{"name": "echo", "arguments": M{"text": "x", "progress": 1}, "_meta": progress(1)})).events(t)
			if primed {
				require.Len(t, events, 3, version)
				require.Empty(t, events[0].data)
				require.NotEmpty(t, events[0].id)
			} else {
				require.Len(t, events, 2, version)
			}
			seen := map[string]bool{}
			for _, ev := range events {
				require.NotEmpty(t, ev.id)
				require.False(t, seen[ev.id], "ids are unique")
				seen[ev.id] = true
			}
		})
	}
}

func TestStreamModeCommitsAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{Response: streamable.Stream})
		in := e.initialize(server.Version20251125, nil)
		begin := time.Now()
		w := in.open(classicTool(1, "wait", M{"tag": "a"}))
		require.Zero(t, time.Since(begin))
		require.NotEmpty(t, w.next().id)
		v := e.open(modernTool(1, "wait", M{"tag": "b"}))
		require.Equal(t, 20*time.Millisecond, time.Since(begin), "errors have had the time to be answered with their status")
		v.drop()
		f.next("b")
		require.Equal(t, "text/event-stream", e.do(modernTool(1, "echo", M{"text": "x"})).header.Get("Content-Type"))
		require.Equal(t, http.StatusBadRequest, e.do(modernTool(1, "nothing", M{})).status)
		a := in.do(classicTool(2, "echo", M{"text": "x"}).with("Accept", "application/json"))
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
		a = in.do(classicTool(1, "wait", M{"tag": "b"}))
		require.Equal(t, http.StatusBadRequest, a.status, "what is not accepted has its status still")
	})
}

func TestResumingGetsExactlyWhatWasMissed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		in := session(t, f, nil)
		w := in.open(stepsCall(1))
		prime := w.next()
		next <- 1
		one := w.next()
		require.Contains(t, one.data, `"progress":1`)
		w.drop()
		synctest.Wait()
		next <- 2
		next <- 3
		again := in.open(resumeAt(one.id))
		require.Contains(t, again.next().data, `"progress":2`)
		three := again.next()
		require.Contains(t, three.data, `"progress":3`)
		next <- 4
		require.Contains(t, again.next().data, `"progress":4`)
		close(next)
		last := again.next()
		require.Contains(t, last.data, `"result"`)
		require.Empty(t, again.end())

		// The stream has ended, but its tail may have been lost on the way.
		late := in.do(resumeAt(three.id)).events(t)
		require.Len(t, late, 2)
		require.Equal(t, last, late[1])
		all := in.do(resumeAt(prime.id)).events(t)
		require.Len(t, all, 5)
		require.Equal(t, one, all[0])
		a := in.do(resumeAt(last.id))
		require.Equal(t, http.StatusNoContent, a.status, "nothing is missing: no reason to come again")
	})
}

func TestResumingReplaysNoOtherStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		one := in.do(classic("one", "tools/call", M{"name": "echo", "arguments": M{"text": "first", "progress": 1}, "_meta": progress(1)})).events(t)
		in.do(classic("two", "tools/call", M{"name": "echo", "arguments": M{"text": "second", "progress": 1}, "_meta": progress(1)}))
		a := in.do(resumeAt(one[0].id))
		require.Contains(t, a.body, "first")
		require.NotContains(t, a.body, "second")
	})
}

func TestPollingWithCloseStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "poll"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			if err := req.CloseStream(2 * time.Second); err != nil {
				return "", err
			}
			time.Sleep(time.Minute)
			return "polled", nil
		})
		e := serve(t, f.s, nil)
		in := e.initialize(server.Version20251125, nil)
		begin := time.Now()
		events := in.do(classicTool(1, "poll", M{})).events(t)
		require.Zero(t, time.Since(begin))
		require.Len(t, events, 2)
		require.NotEmpty(t, events[0].id)
		require.Equal(t, "2000", events[1].retry)
		time.Sleep(2 * time.Second)
		require.NotEmpty(t, events[1].id)
		a := in.do(resumeAt(events[1].id))
		require.Contains(t, a.body, "polled")

		for name, a := range map[string]answer{
			"stateless":       e.do(modernTool(1, "poll", M{})),
			"an old revision": e.initialize(server.Version20250618, nil).do(classicTool(1, "poll", M{})),
			"json":            in.do(classicTool(1, "poll", M{}).with("Accept", "application/json")),
		} {
			assert.Containsf(t, a.body, `"isError":true`, name)
		}
	})
}

func TestOfficialClientPolls(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "poll"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			for range 10 {
				if err := req.CloseStream(time.Second); err != nil {
					return "", err
				}
				time.Sleep(3 * time.Second)
			}
			return "polled", nil
		})
		e := serve(t, f.s, nil)
		cs := e.connect(nil, server.Version20251125)
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "poll", Arguments: M{}})
		require.NoError(t, err)
		require.Equal(t, "polled", res.Content[0].(*mcp.TextContent).Text)
	})
}

func TestDisconnectGrace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, &streamable.Options{DisconnectGrace: time.Minute})
		w := in.open(classicTool(1, "wait", M{"tag": "a"}))
		prime := w.next()
		w.drop()
		time.Sleep(59 * time.Second)
		again := in.open(resumeAt(prime.id)) // in time
		time.Sleep(time.Hour)
		f.untouched("a")
		again.drop()
		begin := time.Now()
		require.Equal(t, cancellation.Disconnect, f.next("a").Origin)
		require.Equal(t, time.Minute, time.Since(begin))
		synctest.Wait()
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(prime.id)).status)
	})
}

// recordingStore counts, and may fail.
type recordingStore struct {
	mcp.EventStore
	mu   sync.Mutex
	n    int
	fail error
}

func (s *recordingStore) Append(ctx context.Context, session, stream string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.n++
	return s.EventStore.Append(ctx, session, stream, data)
}

func (s *recordingStore) appends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func TestAFailingStoreCostsOnlyResumption(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, &streamable.Options{EventStore: &recordingStore{EventStore: streamable.NewRingStore(0), fail: errors.New("down")}})
		events := in.do(classic(1, "tools/call", M{"name": "echo", "arguments": M{"text": "x", "progress": 2}, "_meta": progress(1)})).events(t)
		require.Len(t, events, 3)
		for _, ev := range events {
			require.Empty(t, ev.id)
		}
	})
}

// The official SDK's store works as well; it knows no Forget.
func TestOfficialEventStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		in := session(t, f, &streamable.Options{EventStore: mcp.NewMemoryEventStore(nil)})
		w := in.open(stepsCall(1))
		prime := w.next()
		w.drop()
		next <- 1
		close(next)
		synctest.Wait()
		require.Len(t, in.do(resumeAt(prime.id)).events(t), 2)

		v := in.open(classicTool(2, "wait", M{"tag": "a"}))
		second := v.next()
		v.drop()
		in.accept(cancelOf(2, "r"))
		f.next("a")
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(second.id)).status, "nothing of a cancelled request comes again")
	})
}

func TestAStreamWhoseEventsWereDroppedStillEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		in := session(t, f, &streamable.Options{EventStore: streamable.NewRingStore(4096)})
		w := in.open(stepsCall(1))
		prime := w.next()
		w.drop()
		for i := range 100 {
			next <- i + 1
		}
		synctest.Wait()
		again := in.open(resumeAt(prime.id))
		close(next)
		rest := messages(t, again.end())
		require.NotEmpty(t, rest)
		require.NotNil(t, rest[len(rest)-1].Result)
	})
}

func TestOnlySoManyAnsweredStreamsAreKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		store := streamable.NewRingStore(0)
		in := session(t, f, &streamable.Options{EventStore: store})
		var first, last []event
		sizes := map[int]int{}
		for i := range 200 {
			last = in.do(classic(i, "tools/call", M{"name": "echo", "arguments": M{"text": "x", "progress": 1}, "_meta": progress(1)})).events(t)
			if i == 0 {
				first = last
			}
			synctest.Wait()
			sizes[i] = store.Size()
		}
		require.Less(t, sizes[199], sizes[64]+1000)
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(first[0].id)).status)
		require.Equal(t, http.StatusOK, in.do(resumeAt(last[0].id)).status)
		in.do(newCall(http.MethodDelete, ""))
		require.Zero(t, store.Size())
	})
}

// A store in which reading takes a turn, to have a stream end in the middle of it.
type slowStore struct {
	mcp.EventStore
	reading chan chan struct{}
}

func (s *slowStore) After(ctx context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		done := make(chan struct{})
		s.reading <- done
		<-done
		s.EventStore.After(ctx, session, stream, index)(yield)
	}
}

func TestACancelDuringAResumption(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		store := &slowStore{streamable.NewRingStore(0), make(chan chan struct{})}
		in := session(t, f, &streamable.Options{EventStore: store})
		w := in.open(classicTool(1, "wait", M{"tag": "a"}))
		prime := w.next()
		w.drop()
		resumed := make(chan *flow)
		go func() { resumed <- in.open(resumeAt(prime.id)) }()
		reading := <-store.reading
		in.accept(cancelOf(1, "r")) // does not wait for the store
		f.next("a")
		close(reading)
		require.Empty(t, messages(t, (<-resumed).end()))
	})
}
