package main

import (
	"context"
	"strings"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// waitPrefix begins a value whose completion waits; the rest is the tag.
const waitPrefix = "wait:"

func (f *fixture) addCompletions() {
	complete := server.CompleteFrom("paris", "park", "party")
	f.server.MustSetPromptCompletion("test_prompt_with_arguments", "arg1", complete)
	f.server.MustSetPromptCompletion(promptWait, "tag",
		func(ctx context.Context, _ *servercontext.Request, in server.CompleteIn) (*mcp.CompletionResultDetails, error) {
			tag, ok := strings.CutPrefix(in.Value, waitPrefix)
			if !ok {
				return &mcp.CompletionResultDetails{}, nil
			}
			if err := f.wait(ctx, tag, defaultWait); err != nil {
				return nil, err
			}
			return &mcp.CompletionResultDetails{Values: []string{done}}, nil
		})
}
