package main

import (
	"context"
	"encoding/json"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const watchedURI = "test://watched-resource"

func (f *fixture) addResources() {
	f.addText("test://static-text", "static-text", "Text that never changes.", "This is the content of the static text resource.")
	server.MustAddResource(f.server, &mcp.Resource{
		URI: "test://static-binary", Name: "static-binary", Description: "A picture that never changes.", MIMEType: "image/png",
	}, func(context.Context, *servercontext.Request, server.ReadIn) ([]byte, error) { return picture, nil })
	f.addText(watchedURI, "watched-resource", "A resource whose updates can be subscribed to.", "Watched resource content")
	f.addText("test://empty-text", "empty-text", "Text without a single character.", "")

	server.MustAddResourceTemplate(f.server, &mcp.ResourceTemplate{
		URITemplate: "test://template/{id}/data", Name: "template", Description: "Data by its id.", MIMEType: "application/json",
	}, func(_ context.Context, _ *servercontext.Request, in server.ReadIn) (string, error) {
		id := in.Variables.Get("id")
		b, err := json.Marshal(struct {
			ID           string `json:"id"`
			TemplateTest bool   `json:"templateTest"`
			Data         string `json:"data"`
		}{id, true, "Data for ID: " + id})
		return string(b), err
	})
}

// addText adds a resource whose text never changes.
func (f *fixture) addText(uri, name, description, content string) {
	server.MustAddResource(f.server, &mcp.Resource{URI: uri, Name: name, Description: description, MIMEType: "text/plain"},
		func(context.Context, *servercontext.Request, server.ReadIn) (string, error) { return content, nil })
}
