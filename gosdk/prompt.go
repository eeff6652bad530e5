package gosdk

import (
	"context"
	"errors"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AddPrompt adds a prompt whose handler was written for mcp.Server.AddPrompt.
// Arguments that the prompt requires are checked before the handler runs. A prompt of
// the same name is replaced.
//
// It returns a *server.RegistrationError when the prompt is unusable or h is nil.
func AddPrompt(s *server.Server, p *mcp.Prompt, h mcp.PromptHandler) error {
	if h == nil {
		return &server.RegistrationError{Kind: "prompt", Err: errors.New("the handler is nil")}
	}
	return s.AddPrompt(p, func(ctx context.Context, req *servercontext.Request, _ map[string]string) (*mcp.GetPromptResult, error) {
		ctx, scope, leave, err := enter(ctx, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		call, err := callOf[mcp.GetPromptParams](ctx, scope, req)
		if err != nil {
			return nil, err
		}
		result, err := h(ctx, call)
		return result, serverError(err)
	})
}
