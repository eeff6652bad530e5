package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines is a transport of its own: a message a line, on anything that can be read and
// written. It knows bytes and where a request's messages go, and nothing of requests.
type lines struct {
	mu     sync.Mutex // one message at a time
	stream io.ReadWriteCloser
}

func (l *lines) write(msg []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.stream.Write(append(msg[:len(msg):len(msg)], '\n')) // msg is the server's: copied
	return err
}

// Send, Answer and Silence are where the messages of one request go: here all go the same way,
// and silence needs nothing, since there is no stream to end.
func (l *lines) Send(msg []byte) error    { return l.write(msg) }
func (l *lines) Answer(msg []byte, _ int) { _ = l.write(msg) }
func (l *lines) Silence()                 {}

// serve serves one peer until it has gone, and returns when no handler runs any more.
func (l *lines) serve(ctx context.Context, s *server.Server) error {
	ss := s.Open(ctx, server.SessionOptions{Send: l.write})
	stop := context.AfterFunc(ctx, func() { _ = l.stream.Close() })
	defer stop()
	in := bufio.NewScanner(l.stream)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		ss.Receive(append([]byte(nil), in.Bytes()...), l, nil, nil) // requests keep parts of the message
	}
	ss.Close(cancellation.Disconnect, "the peer is gone") // every request of it is cancelled
	return ss.Wait(context.WithoutCancel(ctx))
}

// A transport of one's own, in full. The rules of package transporttest say what else it has to
// hold, and try it.
func ExampleReply() {
	s := plainServer()
	started, stopped := make(chan struct{}), make(chan error, 1)
	server.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		close(started)
		<-ctx.Done()
		stopped <- cancellation.Checkpoint(ctx)
		return "", cancellation.Checkpoint(ctx)
	})
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- (&lines{stream: there}).serve(context.Background(), s) }()

	answers := bufio.NewScanner(here)
	say := func(line string) { _, _ = io.WriteString(here, line+"\n") }
	say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait",` + meta + `}}`)
	<-started
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`)
	fmt.Println(<-stopped)
	say(`{"jsonrpc":"2.0","id":2,"method":"acme/none","params":{` + meta + `}}`)
	answers.Scan()
	fmt.Println(answers.Text()) // the first line that the server has written
	_ = here.Close()
	fmt.Println(<-served)
	// Output:
	// cancelled by peer: "enough"
	// {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found: acme/none"}}
	// <nil>
}
