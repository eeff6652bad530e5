// Echo-only stdio server, for binary size.
package main

import (
	"context"
	"log"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type args struct {
	Text string `json:"text"`
}

func main() {
	s := server.New(&mcp.Implementation{Name: "echo", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "echo", Description: "echo text"},
		func(ctx context.Context, req *servercontext.Request, in args) (string, error) { return in.Text, nil })
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Fatal(err)
	}
}
