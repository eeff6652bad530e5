package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// printer is the least transport: it prints what the server writes.
type printer struct{ done chan struct{} }

func (p printer) Send(msg []byte) error    { fmt.Printf("sent %s\n", msg); return nil }
func (p printer) Answer(msg []byte, _ int) { fmt.Printf("answered %s\n", msg); close(p.done) }
func (p printer) Silence()                 { fmt.Println("silence"); close(p.done) }
func exchange(ss *server.Session, line string) printer {
	p := printer{make(chan struct{})}
	ss.Receive([]byte(line), p, nil, nil)
	return p
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// A tool is a function of Go types: its schema is inferred, its arguments are
// validated, its result becomes text or structured content.
func ExampleAddTool() {
	s := server.New(&mcp.Implementation{Name: "sums", Version: "1.0.0"}, &server.Options{HideServerInfo: true})

	// region addtool
	type in struct {
		Numbers []int `json:"numbers" jsonschema:"minItems=1" jsonschema_description:"what to add up"`
	}
	type out struct {
		Sum int `json:"sum"`
	}
	err := server.AddTool(s, &mcp.Tool{Name: "sum", Description: "Adds numbers."},
		func(ctx context.Context, _ *servercontext.Request, in in) (out, error) {
			total := 0
			for _, n := range in.Numbers {
				if err := cancellation.Checkpoint(ctx); err != nil {
					return out{}, err
				}
				total += n
			}
			return out{Sum: total}, nil
		})
	// endregion
	if err != nil {
		fmt.Println(err)
		return
	}
	ss := s.Open(context.Background(), server.SessionOptions{})
	<-exchange(ss, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","arguments":{"numbers":[1,2,3]},`+meta+`}}`).done
	<-exchange(ss, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sum","arguments":{"numbers":"1"},`+meta+`}}`).done
	// Output:
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"sum\":6}"}],"structuredContent":{"sum":6}}}
	// answered {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"invalid arguments: numbers must be an array, got a string"}],"isError":true}}
}

// Once its peer has cancelled a request nothing is written for it, whatever
// its handler returns.
func ExampleSession_Receive() {
	s := server.New(&mcp.Implementation{Name: "waits", Version: "1.0.0"}, nil)
	started := make(chan struct{})
	server.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		return "too late", nil
	})
	ss := s.Open(context.Background(), server.SessionOptions{})
	p := exchange(ss, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait",`+meta+`}}`)
	<-started
	exchange(ss, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"user pressed stop"}}`)
	<-p.done
	_ = ss.Wait(context.Background())
	// Unordered output:
	// silence
	// cancelled by peer: "user pressed stop"
}

// Operators learn who was asked to stop, who noticed and who has returned.
func ExampleObserver() {
	// region observer
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		Observer: &server.Observer{
			RequestDone: func(d server.RequestDone) {
				if d.Cancelled {
					noticed, returned := d.Observed.Sub(d.Requested), d.Returned.Sub(d.Requested)
					fmt.Println(d.Name, "was asked by", d.Origin, "and stopped:", noticed <= returned)
				}
			},
		},
		Grace:  time.Second, // after that a handler is reported as unresponsive
		Logger: slog.New(slog.DiscardHandler),
	})
	// endregion
	server.MustAddTool(s, &mcp.Tool{Name: "job"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	}, &server.ToolOptions{Timeout: 10 * time.Millisecond})
	ss := s.Open(context.Background(), server.SessionOptions{})
	p := exchange(ss, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"job",`+meta+`}}`)
	<-p.done
	_ = ss.Wait(context.Background())
	// Output:
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"jobs","version":"1.0.0"}},"content":[{"type":"text","text":"cancelled by timeout: \"limit of 10ms reached\""}],"isError":true}}
	// job was asked by timeout and stopped: true
}

// Middleware sees every method, its params and its result.
func ExampleServer_Use() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{HideServerInfo: true})
	// region middleware
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			result, err := next(ctx, req)
			fmt.Printf("%s: %T, %v\n", req.Method(), result, err)
			return result, err
		}
	})
	// endregion
	server.MustAddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		return "", errors.New("out of paper")
	})
	ss := s.Open(context.Background(), server.SessionOptions{})
	<-exchange(ss, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail",`+meta+`}}`).done
	// Output:
	// tools/call: <nil>, out of paper
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"out of paper"}],"isError":true}}
}

// A custom method is cancellable like any other.
func ExampleAddMethod() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{HideServerInfo: true})
	// region method
	err := server.AddMethod(s, "acme/double", func(_ context.Context, _ *servercontext.Request, in struct {
		N int `json:"n"`
	}) (map[string]int, error) {
		return map[string]int{"n": 2 * in.N}, nil
	})
	// endregion
	fmt.Println(err)
	fmt.Println(server.AddMethod(s, "tools/call", func(context.Context, *servercontext.Request, struct{}) (struct{}, error) {
		return struct{}{}, nil
	}))
	ss := s.Open(context.Background(), server.SessionOptions{})
	<-exchange(ss, `{"jsonrpc":"2.0","id":1,"method":"acme/double","params":{"n":21,`+meta+`}}`).done
	// Output:
	// <nil>
	// method "tools/call": the name is the protocol's own
	// answered {"jsonrpc":"2.0","id":1,"result":{"n":42,"resultType":"complete"}}
}
