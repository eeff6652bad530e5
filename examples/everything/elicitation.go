package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Forms of the elicitation tools. The suite compares them keyword by keyword.
const (
	formPlain = `{"type":"object","properties":{
		"username":{"type":"string","description":"User's response"},
		"email":{"type":"string","description":"User's email address"}},
		"required":["username","email"]}`

	formDefaults = `{"type":"object","properties":{
		"name":{"type":"string","description":"User name","default":"John Doe"},
		"age":{"type":"integer","description":"User age","default":30},
		"score":{"type":"number","description":"User score","default":95.5},
		"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","description":"Verification status","default":true}},
		"required":[]}`

	formEnums = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[
			{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[
			{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}},
		"required":[]}`
)

type samplingPrompt struct {
	Prompt string `json:"prompt" jsonschema_description:"what to send to the model"`
}

type elicitationMessage struct {
	Message string `json:"message" jsonschema_description:"what to show to the user"`
}

// addElicitations adds the tools that ask the client for something and wait.
func (f *fixture) addElicitations() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_sampling", Description: "Asks the client to sample its model.",
	}, func(ctx context.Context, req *servercontext.Request, in samplingPrompt) (string, error) {
		result, err := req.CreateMessage(ctx, sample(in.Prompt, 100))
		if err != nil {
			return "", err
		}
		return "LLM response: " + textOf(result.Content), nil
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_elicitation", Description: "Asks the client's user for input.",
	}, func(ctx context.Context, req *servercontext.Request, in elicitationMessage) (string, error) {
		return elicit(ctx, req, in.Message, formPlain)
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_elicitation_sep1034_defaults", Description: "Asks with a form whose fields have defaults.",
	}, func(ctx context.Context, req *servercontext.Request, _ nothing) (string, error) {
		return elicit(ctx, req, "Please review and update the form fields with defaults", formDefaults)
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_elicitation_sep1330_enums", Description: "Asks with a form that has each kind of enumeration.",
	}, func(ctx context.Context, req *servercontext.Request, _ nothing) (string, error) {
		return elicit(ctx, req, "Please select options from the enum fields", formEnums)
	})
}

// elicit asks the user and says what came of it.
func elicit(ctx context.Context, req *servercontext.Request, message, schema string) (string, error) {
	result, err := req.Elicit(ctx, form(message, schema))
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(result.Content)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Elicitation completed: action=%s, content=%s", result.Action, content), nil
}

func form(message, schema string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
}

func sample(prompt string, maxTokens int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: text(prompt)}},
		MaxTokens: maxTokens,
	}
}

// textOf is the text of a content block, or a note that there is none.
func textOf(content mcp.Content) string {
	if t, ok := content.(*mcp.TextContent); ok {
		return t.Text
	}
	return "(no text)"
}
