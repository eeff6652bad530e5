package stdio_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tool is tested over the wire with a real client: Stop goes in at one end, and the
// server's observer tells what came of it at the other.
func ExampleServeStream_client() {
	// region client
	stopped := make(chan server.RequestDone, 1)
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		Observer: &server.Observer{RequestDone: func(d server.RequestDone) {
			if d.Cancelled {
				stopped <- d
			}
		}},
	})
	started := make(chan struct{})
	server.MustAddTool(s, &mcp.Tool{Name: "wait"},
		func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
			close(started)
			<-ctx.Done()
			return "", cancellation.Checkpoint(ctx)
		})

	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- stdio.ServeStream(context.Background(), s, ours, ours, nil) }()

	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: theirs, Writer: theirs}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, pressStop := context.WithCancel(context.Background())
	go func() {
		<-started
		pressStop()
	}()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
	fmt.Println("the caller knows:", errors.Is(err, context.Canceled))
	done := <-stopped
	fmt.Println("the server knows:", done.Origin, done.Err)
	fmt.Println("answered:", done.Answered)
	// endregion
	_ = session.Close()
	fmt.Println(<-served)
	// Output:
	// the caller knows: true
	// the server knows: peer cancelled by peer: "context canceled"
	// answered: false
	// <nil>
}

// A dialogue with the user ends with the call that opened it.
func ExampleServeStream_nested() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	returned := make(chan error, 1)
	server.MustAddTool(s, &mcp.Tool{Name: "close_all"},
		func(_ context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			// region nested
			answer, err := req.Elicit(context.Background(), &mcp.ElicitParams{Message: "Close all?"}) // any context
			if err != nil {
				returned <- err
				return "", err
			}
			// endregion
			return answer.Action, nil
		})
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- stdio.ServeStream(context.Background(), s, ours, ours, nil) }()

	ctx, pressStop := context.WithCancel(context.Background())
	closed := make(chan struct{})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(dialogue context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			pressStop() // instead of answering
			<-dialogue.Done()
			close(closed)
			return nil, dialogue.Err()
		},
	})
	session, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: theirs, Writer: theirs},
		&mcp.ClientSessionOptions{ProtocolVersion: server.Version20251125})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "close_all"})
	fmt.Println("caller:", errors.Is(err, context.Canceled))
	fmt.Println("handler:", <-returned)
	<-closed
	fmt.Println("the dialogue is closed")
	_ = session.Close()
	fmt.Println(<-served)
	// Output:
	// caller: true
	// handler: cancelled by peer: "context canceled"
	// the dialogue is closed
	// <nil>
}

// Limits of the stream: here for a peer that sends little and must not wait long.
func ExampleOptions() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	ours, theirs := net.Pipe()
	_ = theirs.Close() // the end of the input
	fmt.Println(stdio.ServeStream(context.Background(), s, ours, ours, &stdio.Options{
		MaxLine:  1 << 20, // bytes
		Grace:    -1,      // cancel at once when asked to end
		Deadline: 0,       // 0: three seconds for handlers to return
	}))
	// Output: <nil>
}
