package main

import (
	"context"
	"errors"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errIntended is the text that the conformance suite looks for.
//
//lint:ignore ST1005 the suite compares the text, capital letter included
var errIntended = errors.New("This tool intentionally returns an error for testing")

func text(s string) *mcp.TextContent { return &mcp.TextContent{Text: s} }

// addContent adds a tool for each kind of content, and one that fails.
func (f *fixture) addContent() {
	f.addFixed("test_simple_text", "Answers with text.",
		text("This is a simple text response for testing."))
	f.addFixed("test_image_content", "Answers with an image.",
		&mcp.ImageContent{Data: picture, MIMEType: "image/png"})
	f.addFixed("test_audio_content", "Answers with sound.",
		&mcp.AudioContent{Data: sound, MIMEType: "audio/wav"})
	f.addFixed("test_embedded_resource", "Answers with the contents of a resource.",
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
			URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
		}})
	f.addFixed("test_multiple_content_types", "Answers with text, an image and the contents of a resource.",
		text("Multiple content types test:"),
		&mcp.ImageContent{Data: picture, MIMEType: "image/png"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
			URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
		}})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_error_handling", Description: "Always fails.",
	}, func(context.Context, *servercontext.Request, nothing) (string, error) {
		return "", errIntended
	})
}

// addFixed adds a tool that always answers the same.
func (f *fixture) addFixed(name, description string, content ...mcp.Content) {
	server.MustAddTool(f.server, &mcp.Tool{
		Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(context.Context, *servercontext.Request, nothing) ([]mcp.Content, error) {
		return content, nil
	})
}
