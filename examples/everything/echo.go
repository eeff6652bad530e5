package main

import (
	"context"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echo struct {
	Text     string `json:"text" jsonschema_description:"what to say"`
	Progress int    `json:"progress,omitempty" jsonschema:"minimum=0,maximum=1000000,default=0" jsonschema_description:"how often to report progress before"`
}

func (f *fixture) addEcho() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "echo",
		Description: "Says what it is told.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(ctx context.Context, req *servercontext.Request, in echo) (string, error) {
		for i := 1; i <= in.Progress; i++ {
			if err := req.Progress(ctx, float64(i), float64(in.Progress), ""); err != nil {
				return "", err
			}
		}
		return in.Text, nil
	})
}
