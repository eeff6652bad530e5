package server_test

import (
	"context"
	"fmt"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Calls that come too often are refused, for each client by itself.
func ExampleLimit() {
	s := plainServer()
	server.MustAddTool(s, &mcp.Tool{Name: "search"}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "found", nil })
	// region limit
	s.Use(server.Limit(server.RateLimit{
		Rate: 0.01, Burst: 2, // two at once, and one more every 100 seconds
		Key: func(_ context.Context, req *servercontext.Request) string {
			if who := req.TokenInfo(); who != nil {
				return who.UserID
			}
			return "everybody else"
		},
	}))
	// endregion
	for range 2 {
		show(s, "tools/call", `"name":"search"`, "content")
	}
	show(s, "tools/call", `"name":"search"`, "isError")
	// Output:
	// content [{"type":"text","text":"found"}]
	// content [{"type":"text","text":"found"}]
	// isError true
}

// Processes that serve the same clients tell one another of changes. Here a
// function call stands for whatever carries messages between them.
func ExampleServer_Announce() {
	other := plainServer()
	// region announce
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		Changed: func(c server.Change) { // in a program: publish it; it must not block
			fmt.Println(c.Method, c.URI, other.Announce(c))
		},
	})
	// endregion
	s.ResourceUpdated("jobs://postings/7")
	// Output: notifications/resources/updated jobs://postings/7 <nil>
}

// Middleware sees which tool a call is for.
func ExampleCalledTool() {
	s := plainServer()
	server.MustAddTool(s, &mcp.Tool{Name: "drop_all", Annotations: &mcp.ToolAnnotations{Title: "Drops all"}},
		func(context.Context, *servercontext.Request, struct{}) (string, error) { return "dropped", nil })
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if tool, _ := server.CalledTool(ctx, req, ""); tool != nil {
				fmt.Println("about to run:", tool.Annotations.Title)
			}
			return next(ctx, req)
		}
	})
	show(s, "tools/call", `"name":"drop_all"`, "content")
	tool, _ := s.RegisteredTool("drop_all", "")
	fmt.Println(tool.Name)
	// Output:
	// about to run: Drops all
	// content [{"type":"text","text":"dropped"}]
	// drop_all
}
