package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// official is a session of the official Go SDK's client.
type official struct {
	common
	session *mcp.ClientSession
	command *exec.Cmd // nil over HTTP

	tokens  atomic.Int64
	reports sync.Map // progress token -> func(float64)
}

func openOfficial(ctx context.Context, t *target) (session, error) {
	s := &official{common: common{target: t}}
	client := mcp.NewClient(&mcp.Implementation{Name: "heed-conformance", Version: "1.0.0"}, officialOptions(&s.complain, mcp.ClientOptions{
		CreateMessageHandler:        s.sample,
		ElicitationHandler:          s.elicit,
		ProgressNotificationHandler: s.report,
	}))
	client.AddRoots(&mcp.Root{URI: "file:///srv/heed", Name: "heed"})
	// The SDK does not count its roots; the server asks for them with roots/list.
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "roots/list" {
				if err := s.asks.next(ctx, "roots"); err != nil {
					return nil, err
				}
			}
			return next(ctx, method, r)
		}
	})
	var transport mcp.Transport
	if t.url != "" {
		s.http = &connections{}
		transport = &mcp.StreamableClientTransport{Endpoint: t.url, HTTPClient: &http.Client{Transport: s.http}}
	} else {
		s.command = t.server()
		transport = &mcp.CommandTransport{Command: s.command, TerminateDuration: 4 * time.Second}
	}
	var err error
	s.session, err = client.Connect(context.WithoutCancel(ctx), transport, officialSession(t.revision))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *official) sample(ctx context.Context, _ *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	if err := s.asks.next(ctx, "sampling"); err != nil {
		return nil, err
	}
	return &mcp.CreateMessageResult{Role: "assistant", Model: "fixed", StopReason: "endTurn", Content: &mcp.TextContent{Text: "forty-two"}}, nil
}

func (s *official) elicit(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if err := s.asks.next(ctx, "elicitation"); err != nil {
		return nil, err
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "heed"}}, nil
}

func (s *official) report(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	if f, ok := s.reports.Load(fmt.Sprint(r.Params.ProgressToken)); ok {
		f.(func(float64))(r.Params.Progress)
	}
}

func (s *official) revision() string { return s.session.InitializeResult().ProtocolVersion }

func (s *official) tools(ctx context.Context) ([]string, error) {
	var names []string
	for tool, err := range s.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, tool.Name)
	}
	return names, nil
}

func (s *official) call(ctx context.Context, tool string, arguments map[string]any, progress func(float64)) (*result, error) {
	params := &mcp.CallToolParams{Meta: mcp.Meta{}, Name: tool, Arguments: arguments} // without a Meta the oldest version forgets the token
	if progress != nil {
		token := fmt.Sprintf("go-%d", s.tokens.Add(1))
		s.reports.Store(token, progress) // never removed: reports may come late
		params.SetProgressToken(token)
	}
	r, err := s.session.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	out := &result{isError: r.IsError}
	for _, block := range r.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			out.text = text.Text
			break
		}
	}
	if r.StructuredContent != nil {
		if out.structured, err = json.Marshal(r.StructuredContent); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *official) cancelled() (origin, reason string) {
	if s.target.stateless() && s.http != nil {
		return "disconnect", "the client closed the response"
	}
	return "peer", context.Canceled.Error()
}

// Over HTTP the client drops the stream of a call that it cancels, and with it what it would be
// told of the questions that belong to the call.
func (s *official) told() bool  { return s.http == nil }
func (s *official) stops() bool { return true }

// In the stateless era the client has an answer of its own to that question.
func (s *official) countsRoots() bool { return !s.target.stateless() }
func (s *official) resumes() bool     { return true }

func (s *official) close() error {
	if err := officialClose(s); err != nil || s.command == nil {
		return err
	}
	if !s.command.ProcessState.Success() {
		return fmt.Errorf("the server ended with %v", s.command.ProcessState)
	}
	return nil
}
