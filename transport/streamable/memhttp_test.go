package streamable_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
)

// memListener is a net.Listener whose connections are pipes, so that HTTP works
// within a testing/synctest bubble.
type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemListener() *memListener {
	return &memListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr{} }

func (l *memListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memAddr struct{}

func (memAddr) Network() string { return "mem" }
func (memAddr) String() string  { return "mem" }

// endpoint is a handler behind an in-memory HTTP server, and a client of it.
type endpoint struct {
	t       testing.TB
	s       *server.Server
	h       *streamable.Handler
	l       *memListener
	srv     *http.Server
	client  *http.Client
	url     string
	session string // the Mcp-Session-Id that requests carry, "" for none
	bearer  string // the token that requests carry, "" for none
}

// serve starts an endpoint that ends with the test.
func serve(t testing.TB, s *server.Server, o *streamable.Options) *endpoint {
	t.Helper()
	h := streamable.NewHandler(s, o)
	return serveHandler(t, s, h, h)
}

// serveHandler is serve for a handler with something around it.
func serveHandler(t testing.TB, s *server.Server, h *streamable.Handler, outer http.Handler) *endpoint {
	t.Helper()
	l := newMemListener()
	e := &endpoint{t: t, s: s, h: h, l: l, url: "http://mem.example/mcp"}
	e.srv = &http.Server{Handler: outer}
	e.client = &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableCompression: true}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = e.srv.Serve(l) // returns http.ErrServerClosed
	}()
	t.Cleanup(func() {
		_ = h.Close()
		e.client.CloseIdleConnections()
		_ = e.srv.Close()
		<-served
		<-time.After(time.Second) // net/http lingers on a connection that it closes early
	})
	return e
}
