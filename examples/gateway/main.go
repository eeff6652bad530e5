// Command gateway stands between a client and another MCP server: it offers the other server's
// tools as its own, and passes on calls, reports of progress, and cancels. A Stop that reaches the
// gateway reaches the work.
//
//	go run ./examples/gateway -upstream http://127.0.0.1:9000/mcp
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstream is the session with the other server.
type upstream struct {
	session *mcp.ClientSession
	tokens  atomic.Int64
	running sync.Map // progress token -> func(*mcp.ProgressNotificationParams)
}

// connect uses the official Go SDK's client, which sends a cancel when a call's ctx ends.
func connect(ctx context.Context, endpoint string) (u *upstream, err error) {
	u = &upstream{}
	client := mcp.NewClient(&mcp.Implementation{Name: "gateway", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if report, ok := u.running.Load(r.Params.ProgressToken); ok {
				report.(func(*mcp.ProgressNotificationParams))(r.Params)
			}
		},
	})
	u.session, err = client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint}, nil)
	return u, err
}

// region forward
// forward returns a handler that calls the other server's tool. ctx ends with the call that came
// in, so a cancel from there is sent on; what comes back is passed on as it is.
func (u *upstream) forward(tool string) server.RawToolHandler {
	return func(ctx context.Context, req *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		token := fmt.Sprintf("gateway-%d", u.tokens.Add(1)) // the client's token is the client's affair
		u.running.Store(token, func(p *mcp.ProgressNotificationParams) {
			_ = req.Progress(ctx, p.Progress, p.Total, p.Message)
		})
		defer u.running.Delete(token)
		params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
		params.SetProgressToken(token)
		return u.session.CallTool(ctx, params)
	}
}

// endregion

// offer adds the other server's tools to s.
func (u *upstream) offer(ctx context.Context, s *server.Server) error {
	for tool, err := range u.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if err := s.AddRawTool(tool, u.forward(tool.Name)); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	endpoint := flag.String("upstream", "http://127.0.0.1:9000/mcp", "the MCP server whose tools are offered")
	flag.Parse()
	ctx := context.Background()
	u, err := connect(ctx, *endpoint)
	if err != nil {
		log.Fatal(err)
	}
	s := server.New(&mcp.Implementation{Name: "gateway", Version: "1.0.0"}, nil)
	if err := u.offer(ctx, s); err != nil {
		log.Fatal(err)
	}
	if err := stdio.Serve(ctx, s, nil); err != nil {
		log.Print(err)
	}
	_ = u.session.Close()
}
