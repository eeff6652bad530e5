package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type twoArguments struct {
	Arg1 string `json:"arg1" jsonschema_description:"the first argument"`
	Arg2 string `json:"arg2" jsonschema_description:"the second argument"`
}

type resourceArguments struct {
	ResourceURI string `json:"resourceUri" jsonschema_description:"the URI of the resource to embed"`
}

func (f *fixture) addPrompts() {
	server.MustAddPrompt(f.server, &mcp.Prompt{
		Name: "test_simple_prompt", Description: "A prompt without arguments.",
	}, func(context.Context, *servercontext.Request, nothing) (string, error) {
		return "This is a simple prompt for testing.", nil
	})
	server.MustAddPrompt(f.server, &mcp.Prompt{
		Name: "test_prompt_with_arguments", Description: "A prompt that repeats its two arguments.",
	}, func(_ context.Context, _ *servercontext.Request, in twoArguments) (string, error) {
		return fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.Arg1, in.Arg2), nil
	})
	server.MustAddPrompt(f.server, &mcp.Prompt{
		Name: "test_prompt_with_embedded_resource", Description: "A prompt that embeds a resource.",
	}, func(_ context.Context, _ *servercontext.Request, in resourceArguments) ([]*mcp.PromptMessage, error) {
		// What becomes a URI of a message has to be one.
		if uri, err := url.Parse(in.ResourceURI); err != nil || !uri.IsAbs() {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("resourceUri: %.100q is no URI", in.ResourceURI)}
		}
		return []*mcp.PromptMessage{
			fromUser(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
				URI: in.ResourceURI, MIMEType: "text/plain", Text: "Embedded resource content for testing.",
			}}),
			fromUser(text("Please process the embedded resource above.")),
		}, nil
	})
	server.MustAddPrompt(f.server, &mcp.Prompt{
		Name: "test_prompt_with_image", Description: "A prompt that has an image.",
	}, func(context.Context, *servercontext.Request, nothing) ([]*mcp.PromptMessage, error) {
		return []*mcp.PromptMessage{
			fromUser(&mcp.ImageContent{Data: picture, MIMEType: "image/png"}),
			fromUser(text("Please analyze the image above.")),
		}, nil
	})
	server.MustAddPrompt(f.server, &mcp.Prompt{
		Name: "test_input_required_result_prompt", Description: "A prompt that asks the user for its context.",
	}, func(_ context.Context, req *servercontext.Request, _ nothing) (*mcp.GetPromptResult, error) {
		if given := entered(req.InputResponses(), "user_context", "context"); given != "" {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{fromUser(text("Context: " + given))}}, nil
		}
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
			"user_context": form("What is the context of the prompt?", formContext),
		}}, nil
	})
	f.server.MustSetPromptCompletion("test_prompt_with_arguments", "arg1", server.CompleteFrom("paris", "park", "party"))
}

func fromUser(content mcp.Content) *mcp.PromptMessage {
	return &mcp.PromptMessage{Role: "user", Content: content}
}
