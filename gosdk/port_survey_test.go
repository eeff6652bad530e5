package gosdk_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/heedmcp/heed/server"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The survey asks its client, in both styles, and reports what it does.

func surveyOptions() *mcp.ServerOptions {
	return &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Argument.Value + "!"}, Total: 1}}, nil
		},
	}
}

type (
	askIn struct {
		Question string `json:"question"`
	}
	summarizeIn struct {
		Text string `json:"text"`
	}
	countIn struct {
		To int `json:"to"`
	}
)

type countedOut struct {
	All []int `json:"all"`
}

func registerSurvey(r registry) {
	form := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}, "message": {Type: "string"}}}
	addTool(r, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.CallToolRequest, in askIn) (*mcp.CallToolResult, any, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Question, RequestedSchema: form})
		if err != nil {
			return nil, nil, err
		}
		return nil, M{"action": answer.Action, "content": answer.Content}, nil
	})
	addTool(r, &mcp.Tool{Name: "ask_again"}, func(_ context.Context, req *mcp.CallToolRequest, in askIn) (*mcp.CallToolResult, any, error) {
		if answer, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return nil, M{"action": answer.Action, "content": answer.Content, "state": req.Params.RequestState}, nil
		}
		return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
			"q": &mcp.ElicitParams{Message: in.Question, RequestedSchema: form},
		}}, nil, nil
	})
	addTool(r, &mcp.Tool{Name: "summarize"}, func(ctx context.Context, req *mcp.CallToolRequest, in summarizeIn) (*mcp.CallToolResult, any, error) {
		m, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{SystemPrompt: in.Text, MaxTokens: 9})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{m.Content}}, nil, nil
	})
	addTool(r, &mcp.Tool{Name: "roots"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		roots, err := req.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return nil, M{"roots": len(roots.Roots)}, req.Session.Ping(ctx, nil)
	})
	addTool(r, &mcp.Tool{Name: "count"}, func(ctx context.Context, req *mcp.CallToolRequest, in countIn) (*mcp.CallToolResult, countedOut, error) {
		log := slog.New(mcp.NewLoggingHandler(req.Session, &mcp.LoggingHandlerOptions{LoggerName: "count"}))
		var all countedOut
		for i := range in.To {
			all.All = append(all.All, i)
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(in.To), Message: fmt.Sprint(i),
			}); err != nil {
				return nil, all, err
			}
		}
		log.InfoContext(ctx, "counted", "to", in.To)
		return nil, all, nil
	})
	r.AddTool(&mcp.Tool{Name: "raw", InputSchema: M{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if strings.Contains(string(req.Params.Arguments), "fail") {
			return nil, &sdkrpc.Error{Code: -32050, Message: "failed"}
		}
		return &mcp.CallToolResult{StructuredContent: M{"given": string(req.Params.Arguments)}}, nil
	})
	addTool(r, &mcp.Tool{Name: "refuse"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("refused: %w", &sdkrpc.Error{Code: -32051, Message: "wrapped"})
	})
	r.AddPrompt(&mcp.Prompt{Name: "p", Arguments: []*mcp.PromptArgument{{Name: "a"}}}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
	})
	addTool(r, &mcp.Tool{Name: "gone"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	r.RemoveTools("gone")
}

func playSurvey(s *script) {
	ctx := s.t.Context()
	s.tools()
	handshake := s.cs.InitializeResult().ProtocolVersion != "" && s.cs.InitializeResult().ProtocolVersion != server.Version20260728
	if handshake {
		s.note("level", nil, s.cs.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}))
		s.call("ask", M{"question": "who?"})
		s.call("summarize", M{"text": "long"})
		s.call("roots", nil)
	}
	s.call("ask_again", M{"question": "again?"})
	s.call("count", M{"to": 3})
	if handshake {
		s.notifications(4)
	} else {
		s.notifications(3) // no level was asked for
	}
	s.call("raw", M{"a": 1})
	s.call("raw", M{"fail": true})
	s.call("refuse", nil)
	s.call("gone", nil)
	c, err := s.cs.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteParamsArgument{Name: "a", Value: "v"}})
	s.note("complete", c.Completion, err)
}

// The greeter shows middleware and a tool with a schema of its own.

func registerGreeter(r registry) {
	r.AddReceivingMiddleware(around(func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if tool, ok := result.(*mcp.CallToolResult); ok {
			call := req.(*mcp.CallToolRequest)
			tool.Content = append(tool.Content, &mcp.TextContent{Text: fmt.Sprintf("%s %s %v %v %v", method, call.Params.Name, tool.IsError, tool.GetError(), err)})
		}
		return result, err
	}))
	addTool(r, &mcp.Tool{
		Name: "greet",
		InputSchema: &jsonschema.Schema{Type: "object", Required: []string{"name"}, Properties: map[string]*jsonschema.Schema{
			"name":  {Type: "string"},
			"greet": {Type: "string", Default: []byte(`"Hello"`)},
		}},
		OutputSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
			"said": {Type: "string"},
			"mood": {Type: "string", Default: []byte(`"fine"`)},
		}},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in map[string]any) (*mcp.CallToolResult, any, error) {
		if in["name"] == "" {
			return nil, nil, fmt.Errorf("no name")
		}
		return nil, M{"said": fmt.Sprintf("%s, %s", in["greet"], in["name"])}, nil
	})
}

func playGreeter(s *script) {
	s.told = append(s.told, s.cs.InitializeResult().Instructions)
	s.tools()
	s.call("greet", M{"name": "Bob"})
	s.call("greet", M{"name": ""})
	s.call("greet", M{"name": "Bob", "greet": "Hi"})
}
