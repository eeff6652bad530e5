package streamable_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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

func (g *guard) Flush() { defer g.use()() }

func (g *guard) SetReadDeadline(time.Time) error  { return g.deadline() }
func (g *guard) SetWriteDeadline(time.Time) error { return g.deadline() }

// deadline may come at any time, but not after the return: over HTTP/2 that is a crash.
func (g *guard) deadline() error {
	if g.returned.Load() {
		g.late.Add(1)
	}
	return nil
}

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
