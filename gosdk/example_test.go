package gosdk_test

import (
	"context"
	"fmt"
	"log"

	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type greetIn struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

// region handlers

// greet and announce are written for the official SDK.
func greet(_ context.Context, _ *mcp.CallToolRequest, in greetIn) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello, " + in.Name}}}, nil, nil
}

func announce(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok {
			fmt.Println("calling", call.Params.Name)
		}
		return next(ctx, method, req)
	}
}

// endregion

// A server is ported by changing how it is made and how it is served.
func Example() {
	// region port
	s := gosdk.NewServer(&mcp.Implementation{Name: "greeter", Version: "1.0.0"}, nil, nil)
	s.AddReceivingMiddleware(announce)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "greet"}, greet)
	// endregion

	talk(s.Server)
	// Output:
	// calling greet
	// hello, Bob
}

// Handlers of both kinds live side by side on a Heed server.
func ExampleAddTool() {
	s := server.New(&mcp.Implementation{Name: "greeter", Version: "1.0.0"}, nil)
	// region mixed
	if err := gosdk.AddTool(s, &mcp.Tool{Name: "greet"}, greet); err != nil {
		log.Fatal(err)
	}
	gosdk.Use(s, announce)
	// endregion

	talk(s)
	// Output:
	// calling greet
	// hello, Bob
}

// talk serves one client over a transport of the official SDK.
func talk(s *server.Server) {
	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- gosdk.Serve(ctx, s, there) }()

	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: greetIn{"Bob"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	_ = session.Close()
	if err := <-served; err != nil {
		log.Fatal(err)
	}
}
