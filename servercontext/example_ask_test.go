package servercontext_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// askable is a request whose client can be asked, and answers so.
func askable(answer string) *servercontext.Request {
	client, _ := servercontext.NewClient(nil, []byte(all))
	return servercontext.New(servercontext.Options{Client: client, Host: &host{
		answer: func(string, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(answer), nil },
	}})
}

// The user is asked in the middle of a tool. Declining is an answer, being
// cancelled is an error.
func ExampleRequest_Elicit() {
	req := askable(`{"action":"accept","content":{"confirm":true}}`)
	// region elicit
	closeAll := func(ctx context.Context, n int) (string, error) {
		answer, err := req.Elicit(ctx, &mcp.ElicitParams{
			Message: fmt.Sprintf("Close %d postings and notify their applicants?", n),
			RequestedSchema: json.RawMessage(`{"type":"object","required":["confirm"],
				"properties":{"confirm":{"type":"boolean","title":"Close them"}}}`),
		})
		if err != nil {
			return "", err // the request was cancelled, the client cannot be asked, or nobody answered in time
		}
		if answer.Action != "accept" || answer.Content["confirm"] != true {
			return "nothing was closed", nil // the user said no
		}
		return fmt.Sprintf("closed %d", n), nil
	}
	// endregion
	fmt.Println(closeAll(context.Background(), 400))
	// Output: closed 400 <nil>
}

// With a URL the user is sent to a page, for what must not pass through the client.
func ExampleRequest_Elicit_url() {
	req := askable(`{"action":"accept"}`)
	// region elicit-url
	answer, err := req.Elicit(context.Background(), &mcp.ElicitParams{
		Message: "Sign in to the job board.", URL: "https://board.example/connect?state=8f2c", ElicitationID: "8f2c",
	})
	// endregion
	fmt.Println(answer.Action, err)
	// Output: accept <nil>
}

// The client's model is asked. It may be an expensive wait, and it ends with the request.
func ExampleRequest_CreateMessage() {
	req := askable(`{"role":"assistant","model":"m","content":{"type":"text","text":"stale"}}`)
	// region sample
	answer, err := req.CreateMessage(context.Background(), &mcp.CreateMessageParams{
		MaxTokens: 10,
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{
			Text: "Is this posting stale? Answer with one word."}}},
	})
	// endregion
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Content.(*mcp.TextContent).Text)
	// Output: stale
}

func ExampleRequest_CreateMessageWithTools() {
	req := askable(`{"role":"assistant","model":"m","stopReason":"toolUse","content":[{"type":"tool_use","id":"1","name":"lookup","input":{}}]}`)
	answer, err := req.CreateMessageWithTools(context.Background(), &mcp.CreateMessageWithToolsParams{
		MaxTokens: 100,
		Messages:  []*mcp.SamplingMessageV2{{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: "Which postings are stale?"}}}},
		Tools:     []*mcp.Tool{{Name: "lookup", InputSchema: map[string]any{"type": "object"}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.StopReason)
	// Output: toolUse
}

func ExampleRequest_ListRoots() {
	req := askable(`{"roots":[{"uri":"file:///project","name":"project"}]}`)
	// region roots
	roots, err := req.ListRoots(context.Background())
	// endregion
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(roots.Roots[0].URI)
	// Output: file:///project
}

// Any method of the client, in the handshake era.
func ExampleRequest_Call() {
	req := askable(`{"answer":42}`)
	var out struct {
		Answer int `json:"answer"`
	}
	err := req.Call(context.Background(), "acme/ask", map[string]string{"question": "?"}, &out)
	fmt.Println(out.Answer, err, req.Ping(context.Background()))
	// Output: 42 <nil> <nil>
}

// A client that cannot be asked is told apart before anything is sent.
func ExampleRequest_Elicit_unsupported() {
	client, _ := servercontext.NewClient(nil, []byte(`{}`))
	req := servercontext.New(servercontext.Options{Client: client, Host: &host{}})
	_, err := req.Elicit(context.Background(), &mcp.ElicitParams{Message: "Really?"})
	fmt.Println(err)
	var nobody *servercontext.Request
	_, err = nobody.Elicit(context.Background(), &mcp.ElicitParams{Message: "Really?"})
	fmt.Println(err != nil)
	// Output:
	// client does not declare the capability elicitation.form
	// true
}

// A handler that keeps nothing between two rounds is called again with the
// answers and with the state that it gave along.
func ExampleRequest_InputResponses() {
	// region rounds
	closeAll := func(req *servercontext.Request) *mcp.CallToolResult {
		if answer, ok := req.InputResponses()["confirm"].(*mcp.ElicitResult); ok {
			if answer.Action != "accept" {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "nothing was closed"}}}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "closed " + req.RequestState()}}}
		}
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
				Mode: "form", Message: "Close 400 postings?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
			}},
			RequestState: "batch-7", // sealed by the server: it comes back unchanged, or not at all
		}
	}
	// endregion
	first := closeAll(servercontext.New(servercontext.Options{Host: &host{}}))
	fmt.Println(len(first.InputRequests), first.RequestState)
	retry := closeAll(servercontext.New(servercontext.Options{Host: &host{
		raw: map[string]json.RawMessage{"confirm": json.RawMessage(`{"action":"decline"}`)},
	}}))
	fmt.Println(retry.Content[0].(*mcp.TextContent).Text)
	// Output:
	// 1 batch-7
	// nothing was closed
}
