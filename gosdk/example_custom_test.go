package gosdk_test

import (
	"context"
	"fmt"

	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Middleware of the official SDK sees methods that the SDK has no types for, and may change what
// they are given and return.
func ExampleCustomParams() {
	s := gosdk.Wrap(server.New(&mcp.Implementation{Name: "orders", Version: "1.0.0"}, &server.Options{HideServerInfo: true}))
	type order struct {
		Item string `json:"item"`
	}
	server.MustAddMethod(s.Server, "acme/order", func(_ context.Context, _ *servercontext.Request, in order) (order, error) {
		return in, nil
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if params, ok := req.GetParams().(*gosdk.CustomParams); ok {
				fmt.Println(method, string(params.Raw))
			}
			result, err := next(ctx, method, req)
			if custom, ok := result.(*gosdk.CustomResult); ok {
				custom.Value = map[string]any{"ordered": custom.Value}
			}
			return result, err
		}
	})
	ss := s.Open(context.Background(), server.SessionOptions{})
	answer := make(oneAnswer, 1)
	ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"acme/order","params":{"item":"bolts","_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`), answer, nil, nil)
	fmt.Println(<-answer)
	_ = ss.Wait(context.Background())
	// Output:
	// acme/order {"item":"bolts"}
	// {"jsonrpc":"2.0","id":1,"result":{"ordered":{"item":"bolts"},"resultType":"complete"}}
}

// oneAnswer is a reply that keeps the answer.
type oneAnswer chan string

func (a oneAnswer) Send([]byte) error        { return nil }
func (a oneAnswer) Answer(msg []byte, _ int) { a <- string(msg) }
func (a oneAnswer) Silence()                 { a <- "silence" }

// Middleware around what handlers of the official SDK send through their session.
func ExampleServer_AddSendingMiddleware() {
	s := gosdk.NewServer(&mcp.Implementation{Name: "docs", Version: "1.0.0"}, nil, nil)
	s.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			fmt.Println("sending", method)
			return next(ctx, method, req)
		}
	})
	gosdk.MustAddTool(s, &mcp.Tool{Name: "steps"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
		return &mcp.CallToolResult{}, nil, err
	})
	converse(s.Server, func(ctx context.Context, cs *mcp.ClientSession) {
		params := &mcp.CallToolParams{Meta: mcp.Meta{"progressToken": "p"}, Name: "steps"}
		result, err := cs.CallTool(ctx, params)
		fmt.Println(result.IsError, err)
	})
	// Output:
	// sending notifications/progress
	// false <nil>
}
