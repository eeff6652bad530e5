package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools that ask the client by returning what they want to know. They are called
// again with the answers and keep nothing in between but what the client brings
// back as their state. An answer that is missing, or that is not what was asked
// for, is asked for again.
//
// Specification: basic/patterns/mrtr (2026-07-28).

const (
	formName    = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	formColor   = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	formConfirm = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
	formContext = `{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`
)

func (f *fixture) addRounds() {
	f.addRound("test_input_required_result_elicitation", "Asks for a name.", greetByName)
	f.addRound("test_input_required_result_sampling", "Asks the model for a capital.", nameCapital)
	f.addRound("test_input_required_result_list_roots", "Asks for the roots.", countRoots)
	f.addRound("test_input_required_result_request_state", "Asks for a confirmation and wants its state back.", confirmState)
	f.addRound("test_input_required_result_tampered_state", "Does the same, for clients that change the state.", confirmState)
	f.addRound("test_input_required_result_multiple_inputs", "Asks for three things at once.", askThree)
	f.addRound("test_input_required_result_multi_round", "Asks twice, in two rounds.", askTwice)
	f.addRound("test_input_required_result_capabilities", "Asks only for what the client can do.", askWhatIsPossible)
}

// roundTool is called once per round.
type roundTool func(req *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult

func (f *fixture) addRound(name, description string, tool roundTool) {
	server.MustAddTool(f.server, &mcp.Tool{Name: name, Description: description},
		func(_ context.Context, req *servercontext.Request, _ nothing) (*mcp.CallToolResult, error) {
			return tool(req, req.InputResponses()), nil
		})
}

func greetByName(_ *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult {
	if name := entered(answers, "user_name", "name"); name != "" {
		return textResult("Hello, %s!", name)
	}
	return wantInput("", mcp.InputRequestMap{"user_name": form("What is your name?", formName)})
}

func nameCapital(_ *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult {
	if answer, ok := sampled(answers, "capital_question"); ok {
		return textResult("The model says: %s", answer)
	}
	return wantInput("", mcp.InputRequestMap{"capital_question": sample("What is the capital of France?", 100)})
}

func countRoots(_ *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult {
	if roots, ok := rooted(answers, "client_roots"); ok {
		return textResult("The client has %d roots: %s", len(roots), strings.Join(roots, ", "))
	}
	return wantInput("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
}

// confirmState never sees a state that the client has changed: the server opens
// its seal before the tool is called.
func confirmState(req *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult {
	const state = "waits for the confirmation"
	if content, ok := accepted(answers, "confirm"); ok && content["ok"] == true && req.RequestState() == state {
		return textResult("state-ok: the state came back and the confirmation is there")
	}
	return wantInput(state, mcp.InputRequestMap{"confirm": form("Please confirm.", formConfirm)})
}

func askThree(_ *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult {
	name := entered(answers, "user_name", "name")
	greeting, greeted := sampled(answers, "greeting")
	roots, listed := rooted(answers, "client_roots")
	if name != "" && greeted && listed {
		return textResult("%s, %s! The client has %d roots.", greeting, name, len(roots))
	}
	return wantInput("waits for three answers", mcp.InputRequestMap{
		"user_name":    form("What is your name?", formName),
		"greeting":     sample("Say a greeting.", 50),
		"client_roots": &mcp.ListRootsParams{},
	})
}

// askTwice keeps the first answer in its state.
func askTwice(req *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult {
	const asked, knows = "asked for the name", "the name is "
	name, second := strings.CutPrefix(req.RequestState(), knows)
	if !second {
		name = entered(answers, "step1", "name")
		if name == "" {
			return wantInput(asked, mcp.InputRequestMap{"step1": form("Step 1: what is your name?", formName)})
		}
	}
	if color := entered(answers, "step2", "color"); second && color != "" {
		return textResult("%s likes %s.", name, color)
	}
	return wantInput(knows+name, mcp.InputRequestMap{"step2": form("Step 2: what is your favourite colour?", formColor)})
}

func askWhatIsPossible(req *servercontext.Request, answers mcp.InputResponseMap) *mcp.CallToolResult {
	if len(answers) > 0 {
		return textResult("The client has answered %d questions.", len(answers))
	}
	requests := mcp.InputRequestMap{}
	if req.HasClientCapability("elicitation.form") {
		requests["user_name"] = form("What is your name?", formName)
	}
	if req.HasClientCapability("sampling") {
		requests["greeting"] = sample("Say a greeting.", 50)
	}
	if req.HasClientCapability("roots") {
		requests["client_roots"] = &mcp.ListRootsParams{}
	}
	if len(requests) == 0 {
		return textResult("There is nothing that this client can be asked.")
	}
	return wantInput("", requests)
}

func textResult(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{text(fmt.Sprintf(format, args...))}}
}

func wantInput(state string, requests mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}
}

// accepted is what the user entered into a form and sent.
func accepted(answers mcp.InputResponseMap, key string) (content map[string]any, ok bool) {
	answer, _ := answers[key].(*mcp.ElicitResult)
	if answer == nil || answer.Action != "accept" {
		return nil, false
	}
	return answer.Content, true
}

// entered is one text of it, "" when it is missing.
func entered(answers mcp.InputResponseMap, key, property string) string {
	content, _ := accepted(answers, key)
	value, _ := content[property].(string)
	return value
}

// sampled is the text that the client's model has answered.
func sampled(answers mcp.InputResponseMap, key string) (string, bool) {
	switch answer := answers[key].(type) {
	case *mcp.CreateMessageResult:
		return textOf(answer.Content), true
	case *mcp.CreateMessageWithToolsResult:
		for _, block := range answer.Content {
			if t, ok := block.(*mcp.TextContent); ok {
				return t.Text, true
			}
		}
		return textOf(nil), true
	}
	return "", false
}

// rooted are the URIs of the client's roots.
func rooted(answers mcp.InputResponseMap, key string) (uris []string, ok bool) {
	answer, _ := answers[key].(*mcp.ListRootsResult)
	if answer == nil {
		return nil, false
	}
	for _, root := range answer.Roots {
		uris = append(uris, root.URI)
	}
	return uris, true
}
