package gosdk_test

import (
	"context"
	"fmt"
	"log"

	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// region before

type importIn struct {
	Rows []string `json:"rows" jsonschema:"what to import"`
}

// importRows is written for the official SDK.
func importRows(ctx context.Context, req *mcp.CallToolRequest, in importIn) (*mcp.CallToolResult, any, error) {
	for i, row := range in.Rows {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: req.Params.GetProgressToken(),
			Progress:      float64(i + 1), Total: float64(len(in.Rows)), Message: row,
		})
	}
	return &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.TextContent{Text: fmt.Sprintf("imported %d rows", len(in.Rows))},
	}}, nil, nil
}

// endregion

// region after

type importIn2 struct {
	Rows []string `json:"rows" jsonschema_description:"what to import"`
}

// importRows2 is the same tool, written for Heed.
func importRows2(ctx context.Context, req *servercontext.Request, in importIn2) (string, error) {
	for i, row := range in.Rows {
		if err := req.Progress(ctx, float64(i+1), float64(len(in.Rows)), row); err != nil {
			return "", err // who stopped it, and why
		}
	}
	return fmt.Sprintf("imported %d rows", len(in.Rows)), nil
}

// endregion

// A tool before and after the port, side by side on one server.
func ExampleMustAddTool() {
	// region both
	s := server.New(&mcp.Implementation{Name: "importer", Version: "1.0.0"}, nil)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "import"}, importRows)
	server.MustAddTool(s, &mcp.Tool{Name: "import2"}, importRows2)
	// endregion

	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- gosdk.Serve(ctx, s, there) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"import", "import2"} {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: map[string]any{"rows": []string{"a", "b"}}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	}
	_ = session.Close()
	fmt.Println(<-served)
	// Output:
	// imported 2 rows
	// imported 2 rows
	// <nil>
}
