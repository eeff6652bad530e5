package transporttest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/heedmcp/heed/transport/transporttest/fixture"
	"github.com/heedmcp/heed/transport/transporttest/wire"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newServer returns a server with the fixtures.
func newServer() *server.Server {
	s := server.New(&mcp.Implementation{Name: "fixture", Version: "1.0.0"}, &server.Options{
		ProgressInterval: -1, Logger: slog.New(slog.DiscardHandler),
	})
	fixture.Register(s)
	if _, err := tasks.Enable(s, nil); err != nil {
		panic(err) // nobody has added it before
	}
	return s
}

// Those who use the endpoints in memory, by their tokens.
const (
	somebody     = "Bearer somebody"
	somebodyElse = "Bearer somebody-else"
)

// withAuthorization lets those in who say who they are.
func withAuthorization(next http.Handler) http.Handler {
	return auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)(next)
}

// inMemory serves the fixtures over pipes, each time with a new server, which is
// broken if there is a fault.
func inMemory(f *fault) *transporttest.Target {
	return &transporttest.Target{Dial: func(context.Context) (*transporttest.Connection, error) {
		return dialMemory(f), nil
	}}
}

func dialMemory(f *fault) *transporttest.Connection {
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	connection := &transporttest.Connection{R: clientIn, W: clientOut}
	var between sync.WaitGroup
	var b *broken
	passed := make(chan struct{}) // closed when b has passed on all that the client has sent
	if f == nil {
		close(passed)
	} else {
		clientR, brokenToClient := io.Pipe()
		brokenFromClient, clientW := io.Pipe()
		b = &broken{fault: *f, asked: map[string]wire.Message{}, client: brokenToClient, server: clientOut}
		between.Go(func() {
			defer close(passed)
			b.fromClient(brokenFromClient)
		})
		between.Go(func() { b.fromServer(clientIn) })
		connection.R, connection.W = clientR, clientW
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s := newServer()
	var err error
	go func() {
		defer close(ended)
		err = stdio.ServeStream(ctx, s, serverIn, serverOut, nil)
		serverOut.Close()
		serverIn.Close()
	}()
	connection.Life = transporttest.Life{
		Ended: ended,
		Result: func() (bool, string) {
			if err != nil {
				return false, err.Error()
			}
			return true, "no error"
		},
		Shutdown: func() error {
			if b != nil && b.shutDown() {
				return nil
			}
			stop()
			return nil
		},
		Close: func() {
			connection.W.Close()
			<-passed
			clientOut.Close()
			stop()
			<-ended
			clientIn.Close()
			if closer, ok := connection.R.(io.Closer); ok {
				closer.Close()
			}
			between.Wait()
			returned(s)
		},
	}
	return connection
}

// returned waits until no handler runs any more: some do not look at their token.
func returned(s *server.Server) {
	for deadline := time.Now().Add(5 * time.Minute); s.Stats().Lingering+s.Stats().InFlight > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("handlers that nobody has stopped: %v", s.InFlight()))
		}
	}
}

// inMemoryHTTP serves the fixtures over HTTP on pipes, a server for each rule.
func inMemoryHTTP(o *streamable.Options, wrap func(http.Handler) http.Handler) *transporttest.Target {
	return &transporttest.Target{Open: func(context.Context) (*transporttest.Endpoint, error) {
		s := newServer()
		h := streamable.NewHandler(s, o)
		outer := withAuthorization(h)
		if wrap != nil {
			outer = wrap(outer)
		}
		return openMemory(s, h, outer), nil
	}}
}

func openMemory(s *server.Server, h *streamable.Handler, outer http.Handler) *transporttest.Endpoint {
	l := bubble.Listen()
	web := &http.Server{Handler: outer}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(l) // returns http.ErrServerClosed
	}()
	transport := wire.NewTransport()
	transport.DialContext = l.Dial
	ended := make(chan struct{})
	var once sync.Once
	shutDown := func() {
		once.Do(func() {
			go func() {
				defer close(ended)
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				_ = h.Shutdown(ctx) // what is left is not its fault
				if web.Shutdown(ctx) != nil {
					web.Close()
				}
				<-served
			}()
		})
	}
	return &transporttest.Endpoint{
		URL: "http://mem.example/mcp", Transport: transport,
		Header: http.Header{"Authorization": {somebody}}, Other: http.Header{"Authorization": {somebodyElse}},
		Life: transporttest.Life{
			Ended:    ended,
			Shutdown: func() error { shutDown(); return nil },
			Close: func() {
				_ = h.Close()
				transport.CloseIdleConnections()
				_ = web.Close()
				<-served
				shutDown()
				<-ended
				returned(s)
			},
		},
	}
}
