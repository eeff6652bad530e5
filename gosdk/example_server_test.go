package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// converse lets a client of the official SDK talk to a server over its in-memory transport.
func converse(s *server.Server, conversation func(context.Context, *mcp.ClientSession)) {
	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- gosdk.Serve(ctx, s, there) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	conversation(ctx, session)
	_ = session.Close()
	if err := <-served; err != nil {
		log.Fatal(err)
	}
}

func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
}

func hello(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "hello " + req.Params.Arguments["name"]}},
	}}, nil
}

func read(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "text of " + req.Params.URI}}}, nil
}

// Code that registers things with a *mcp.Server needs no change.
func ExampleServer() {
	s := gosdk.NewServer(&mcp.Implementation{Name: "docs", Version: "1.0.0"}, &mcp.ServerOptions{Instructions: "read before you ask"}, nil)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, echo)
	s.AddPrompt(&mcp.Prompt{Name: "hello", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}, hello)
	s.AddResource(&mcp.Resource{URI: "docs://a", Name: "a"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "docs://pages/{n}", Name: "page"}, read)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "prompts/get" {
				fmt.Println("middleware:", method)
			}
			return next(ctx, method, req)
		}
	})

	converse(s.Server, func(ctx context.Context, cs *mcp.ClientSession) {
		tool, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}})
		fmt.Println(tool.Content[0].(*mcp.TextContent).Text, err)
		prompt, err := cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "hello", Arguments: map[string]string{"name": "Ann"}})
		fmt.Println(prompt.Messages[0].Content.(*mcp.TextContent).Text, err)
		page, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: "docs://pages/7"})
		fmt.Println(page.Contents[0].Text, err)
		fmt.Println(s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "docs://a"}))
	})
	// Output:
	// {"a":1} <nil>
	// middleware: prompts/get
	// hello Ann <nil>
	// text of docs://pages/7 <nil>
	// <nil>
}

// Single handlers on a Heed server, and errors instead of panics.
func ExampleAddRawTool() {
	s := server.New(&mcp.Implementation{Name: "docs", Version: "1.0.0"}, nil)
	fmt.Println(gosdk.AddRawTool(s, &mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, echo))
	fmt.Println(gosdk.AddRawTool(s, &mcp.Tool{Name: "without a schema"}, echo) != nil)
	fmt.Println(gosdk.AddPrompt(s, &mcp.Prompt{Name: "hello"}, hello))
	fmt.Println(gosdk.AddResource(s, &mcp.Resource{URI: "docs://a", Name: "a"}, read))
	fmt.Println(gosdk.AddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: "docs://pages/{n}", Name: "page"}, read))
	// Output:
	// <nil>
	// true
	// <nil>
	// <nil>
	// <nil>
}

type pingParams struct {
	mcp.ParamsBase
	Text string `json:"text"`
}

type pingResult struct {
	mcp.ResultBase
	Text string `json:"text"`
}

// Methods of your own, as the official SDK has them.
func ExampleAddReceivingCustomMethod() {
	s := gosdk.Wrap(server.New(&mcp.Implementation{Name: "docs", Version: "1.0.0"}, nil))
	err := gosdk.AddReceivingCustomMethod(s, "acme/echo",
		func(_ context.Context, _ *mcp.ServerSession, params *pingParams) (*pingResult, error) {
			return &pingResult{Text: params.Text}, nil
		})
	fmt.Println(err)
	err = gosdk.AddReceivingCustomMethod(s, "tools/call",
		func(context.Context, *mcp.ServerSession, *pingParams) (*pingResult, error) { return nil, nil })
	fmt.Println(err)
	// Output:
	// <nil>
	// method "tools/call": the name is the protocol's own
}
