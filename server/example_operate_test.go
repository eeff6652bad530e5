package server_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// quiet keeps what a server logs out of an example's output.
var quiet = slog.New(slog.DiscardHandler)

// call starts a call of a tool without arguments, in the stateless era.
func call(ss *server.Session, id int, tool string) printer {
	return exchange(ss, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,%s}}`, id, tool, meta))
}

// Limits stand with the tool, or with the server for all of them.
func ExampleToolOptions() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{HideServerInfo: true, Logger: quiet})
	slow := func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	}
	// region limit
	err := server.AddTool(s, &mcp.Tool{Name: "import"}, slow, &server.ToolOptions{
		Timeout:         50 * time.Millisecond, // of silence, since …
		ResetOnProgress: true,                  // … each progress report starts it anew,
		MaxTimeout:      time.Minute,           // but never beyond this
		MaxConcurrent:   4,                     // further calls wait, and can be cancelled while they do
	})
	// endregion
	if err != nil {
		fmt.Println(err)
		return
	}
	ss := s.Open(context.Background(), server.SessionOptions{})
	<-call(ss, 1, "import").done
	_ = ss.Wait(context.Background())
	// Output: answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"cancelled by timeout: \"limit of 50ms reached\""}],"isError":true}}
}

// Who was asked to stop, by whom, and how long it took, as metrics.
func ExampleRequestDone() {
	// region metrics
	stops := expvar.NewMap("mcp_stops") // by origin
	took := expvar.NewFloat("mcp_stop_seconds_max")
	ignored := expvar.NewInt("mcp_stops_ignored")
	observer := &server.Observer{
		RequestDone: func(d server.RequestDone) {
			if !d.Cancelled {
				return
			}
			stops.Add(d.Origin.String(), 1)
			if s := d.Returned.Sub(d.Requested).Seconds(); s > took.Value() {
				took.Set(s)
			}
		},
		Unresponsive: func(u server.Unresponsive) {
			ignored.Add(1) // u.Stack says where the handler is
		},
	}
	// endregion
	observer.RequestDone(server.RequestDone{Cancelled: true, Origin: cancellation.Peer})
	fmt.Println(stops)
	// Output: {"peer": 1}
}

// An operator sees what runs, and stops one of them. Its client did not ask for
// that, so it is answered.
func ExampleServer_Cancel() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{HideServerInfo: true, Logger: quiet})
	started := make(chan struct{})
	server.MustAddTool(s, &mcp.Tool{Name: "export"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	})
	ss := s.Open(context.Background(), server.SessionOptions{ID: "s-1"})
	p := call(ss, 7, "export")
	<-started
	// region inflight
	for _, f := range s.InFlight() {
		fmt.Println(f.Session, f.ID, f.Method, f.Name, time.Since(f.Accepted) < time.Minute)
		s.Cancel(f.Session, f.ID, "the database is going down for an hour")
	}
	// endregion
	<-p.done
	_ = ss.Wait(context.Background())
	fmt.Println(len(s.InFlight()))
	// Output:
	// s-1 7 tools/call export true
	// answered {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"cancelled by shutdown: \"the database is going down for an hour\""}],"isError":true}}
	// 0
}

// A shutdown gives running calls some time, cancels them, and says who is left.
func ExampleServer_Drain() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		HideServerInfo: true, Logger: quiet,
		DrainGrace: time.Millisecond,
	})
	started, release := make(chan struct{}), make(chan struct{})
	server.MustAddTool(s, &mcp.Tool{Name: "deaf"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		close(started)
		<-release // looks at no token
		return "", nil
	})
	ss := s.Open(context.Background(), server.SessionOptions{})
	p := call(ss, 1, "deaf")
	<-started
	// region drain
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := s.Drain(ctx)
	var left *server.DrainError
	if errors.As(err, &left) {
		for _, f := range left.Left {
			fmt.Println("still running:", f.Name, f.Cancelled)
		}
	}
	// endregion
	<-p.done
	fmt.Println(errors.Is(err, server.ErrHandlersLeft), s.Draining())
	close(release)
	_ = ss.Wait(context.Background())
	// Output:
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"cancelled by shutdown: \"the server is shutting down\""}],"isError":true}}
	// still running: deaf cancelled by shutdown: "the server is shutting down"
	// true true
}

// A handler that does not stop is reported, with the place where it stands.
func ExampleUnresponsive() {
	reported, release := make(chan server.Unresponsive, 1), make(chan struct{})
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		HideServerInfo: true, Logger: quiet,
		// region unresponsive
		Grace:    20 * time.Millisecond, // after a cancel; the default is five seconds
		Observer: &server.Observer{Unresponsive: func(u server.Unresponsive) { reported <- u }},
		// endregion
	})
	server.MustAddTool(s, &mcp.Tool{Name: "deaf"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		<-release
		return "", nil
	}, &server.ToolOptions{Timeout: time.Millisecond})
	ss := s.Open(context.Background(), server.SessionOptions{})
	p := call(ss, 1, "deaf")
	u := <-reported
	<-p.done // the runtime has answered for it
	fmt.Println(u.Name, u.Origin, u.Stack != "")
	stats := s.Stats()
	fmt.Println("may be answered:", stats.InFlight, "still running:", stats.Lingering, "reported:", stats.Unresponsive)
	close(release)
	_ = ss.Wait(context.Background())
	// Output:
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"cancelled by timeout: \"limit of 1ms reached\""}],"isError":true}}
	// deaf timeout true
	// may be answered: 0 still running: 1 reported: 1
}

// Reasons, limits and errors are told to the client in words of your own.
func ExampleOptions() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		HideServerInfo: true,
		Instructions:   "Closes stale postings. Repeat a call with the same operation_id to go on.",
		Timeout:        10 * time.Minute,
		Logger:         quiet,
		ErrorText: func(err error) string {
			if errors.Is(err, errQuota) {
				return err.Error()
			}
			return "the job board is not available" // the rest is in the log
		},
	})
	server.MustAddTool(s, &mcp.Tool{Name: "a"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		return "", errQuota
	})
	server.MustAddTool(s, &mcp.Tool{Name: "b"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		return "", errors.New("dial tcp 10.0.0.7:5432: connection refused")
	})
	ss := s.Open(context.Background(), server.SessionOptions{})
	<-call(ss, 1, "a").done
	<-call(ss, 2, "b").done
	// Output:
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"quota of 3 exports a day is used up"}],"isError":true}}
	// answered {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"the job board is not available"}],"isError":true}}
}

var errQuota = errors.New("quota of 3 exports a day is used up")
