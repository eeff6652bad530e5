package server_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

// What a registration says to an extension can be asked for.
func TestToolsSpeakToExtensions(t *testing.T) {
	const id = "com.example/reviews"
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		type said struct{ tool, text string }
		heard := make(chan said, 9)
		f.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				tool, text := server.CalledTool(ctx, req, id)
				if tool != nil {
					heard <- said{tool.Name, text.(string)}
				} else if req.Method() == "tools/call" {
					heard <- said{}
				}
				return next(ctx, req)
			}
		})
		f.tool("reviewed", func(context.Context, *servercontext.Request, tagged) (any, error) { return "done", nil },
			&server.ToolOptions{Extensions: map[string]any{id: "twice"}})
		p.Call(1, "reviewed", tagged{})
		p.Text(1)
		assert.Equal(t, said{"reviewed", "twice"}, <-heard)
		p.Call(2, "unknown", tagged{})
		p.Answer(2)
		assert.Equal(t, said{}, <-heard)
		f.SetToolFilter(func(context.Context, *servercontext.Request, *mcp.Tool) bool { return false })
		p.Call(3, "reviewed", tagged{})
		p.Answer(3)
		assert.Equal(t, said{}, <-heard, "what is hidden is unknown")

		tool, text := f.RegisteredTool("reviewed", id)
		assert.Equal(t, "reviewed", tool.Name)
		assert.Equal(t, "twice", text)
		tool, text = f.RegisteredTool("unknown", id)
		assert.Nil(t, tool)
		assert.Nil(t, text)
		tool, _ = server.CalledTool(context.Background(), nil, id)
		assert.Nil(t, tool)
	})
}
