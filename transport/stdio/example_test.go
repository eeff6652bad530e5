package stdio_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server for any number of connections: each is a session of its own.
func ExampleServeStream() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)

	// region stream
	ours, theirs := net.Pipe() // in a program: a connection that was accepted
	done := make(chan error)
	go func() {
		defer ours.Close()
		done <- stdio.ServeStream(context.Background(), s, ours, ours, nil)
	}()
	// endregion

	io.WriteString(theirs, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	line, _ := bufio.NewReader(theirs).ReadString('\n')
	fmt.Print(line)
	theirs.Close()
	fmt.Println(<-done)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{}}
	// <nil>
}

// The main function of a server over standard input and output.
func ExampleServe() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		fmt.Println(err)
	}
}
