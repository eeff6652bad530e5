package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// applicationReason is the reason that this program, as the client's application, gives for
// a cancel that the client itself does not send.
const applicationReason = "the user has pressed stop"

// mcpgo is a session of mcp-go's client.
type mcpgo struct {
	common
	client  *client.Client
	command *exec.Cmd // nil over HTTP
	agreed  string    // the revision

	tokens  atomic.Int64
	reports sync.Map // progress token -> func(float64)
}

func openMCPGo(ctx context.Context, t *target) (session, error) {
	s := &mcpgo{common: common{target: t}}
	// Over HTTP the client's answer to a question is part of the call that the question belongs to,
	// and is broken off, although it has arrived, when the call's result is there first.
	s.complain.ignored = "failed to send response to server"
	over, err := s.transport()
	if err != nil {
		return nil, err
	}
	s.client = client.NewClient(over,
		append(mcpgoOptions(t.revision),
			client.WithSamplingHandler(s), client.WithElicitationHandler(s), client.WithRootsHandler(s))...)
	s.client.OnNotification(s.report)
	if err := s.client.Start(context.WithoutCancel(ctx)); err != nil { // of the whole session
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = t.revision
	hello.Params.ClientInfo = mcp.Implementation{Name: "heed-conformance", Version: "1.0.0"}
	result, err := s.client.Initialize(ctx, hello)
	if err != nil {
		return nil, err
	}
	s.agreed = result.ProtocolVersion
	return s, nil
}

func (s *mcpgo) transport() (transport.Interface, error) {
	if s.target.url != "" {
		s.http = &connections{}
		return transport.NewStreamableHTTP(s.target.url,
			transport.WithHTTPBasicClient(&http.Client{Transport: s.http}), mcpgoHTTPLogger(&s.complain))
	}
	start := func(context.Context, string, []string, []string) (*exec.Cmd, error) {
		s.command = exec.Command(s.target.command[0], s.target.command[1:]...)
		return s.command, nil
	}
	return transport.NewStdioWithOptions(s.target.command[0], nil, s.target.command[1:],
		append(mcpgoStdioOptions(&s.complain), transport.WithCommandFunc(start))...), nil
}

// CreateMessage implements client.SamplingHandler.
func (s *mcpgo) CreateMessage(ctx context.Context, _ mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	if err := s.asks.next(ctx, "sampling"); err != nil {
		return nil, err
	}
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent("forty-two")},
		Model:           "fixed", StopReason: "endTurn",
	}, nil
}

// Elicit implements client.ElicitationHandler.
func (s *mcpgo) Elicit(ctx context.Context, _ mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	if err := s.asks.next(ctx, "elicitation"); err != nil {
		return nil, err
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"name": "heed"},
	}}, nil
}

// ListRoots implements client.RootsHandler.
func (s *mcpgo) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	if err := s.asks.next(ctx, "roots"); err != nil {
		return nil, err
	}
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: "file:///srv/heed", Name: "heed"}}}, nil
}

func (s *mcpgo) report(n mcp.JSONRPCNotification) {
	if n.Method != "notifications/progress" {
		return
	}
	done, _ := n.Params.AdditionalFields["progress"].(float64)
	if f, ok := s.reports.Load(fmt.Sprint(n.Params.AdditionalFields["progressToken"])); ok {
		f.(func(float64))(done)
	}
}

func (s *mcpgo) revision() string { return s.agreed }

func (s *mcpgo) tools(ctx context.Context) ([]string, error) {
	list, err := s.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

func (s *mcpgo) call(ctx context.Context, tool string, arguments map[string]any, progress func(float64)) (*result, error) {
	var request mcp.CallToolRequest
	request.Params.Name, request.Params.Arguments = tool, arguments
	if progress != nil {
		token := fmt.Sprintf("mcp-go-%d", s.tokens.Add(1))
		s.reports.Store(token, progress) // never removed: reports may come late
		request.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	var id json.RawMessage
	r, err := s.client.CallTool(context.WithValue(ctx, requestID{}, &id), request)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", ctx.Err(), errors.Join(err, s.cancel(id)))
		}
		return nil, err
	}
	out := &result{isError: r.IsError}
	for _, block := range r.Content {
		if text, ok := block.(mcp.TextContent); ok {
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

// cancel tells the server of a cancel where the client does not: in the handshake era
// over HTTP it just drops the response, which a server must not take for a cancel.
func (s *mcpgo) cancel(id json.RawMessage) error {
	if s.http == nil || s.target.stateless() || id == nil {
		return nil
	}
	return s.client.GetTransport().SendNotification(context.Background(), mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{
			Method: "notifications/cancelled",
			Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": id, "reason": applicationReason}},
		},
	})
}

func (s *mcpgo) cancelled() (origin, reason string) {
	switch {
	case s.http == nil:
		return "peer", context.Canceled.Error()
	case s.target.stateless():
		return "disconnect", "the client closed the response"
	default:
		return "peer", applicationReason
	}
}

func (s *mcpgo) stops() bool       { return s.http != nil || mcpgoCancels }
func (s *mcpgo) told() bool        { return false }
func (s *mcpgo) countsRoots() bool { return true }
func (s *mcpgo) resumes() bool     { return false }

func (s *mcpgo) close() error {
	if err := s.client.Close(); err != nil || s.command == nil {
		return err
	}
	if !s.command.ProcessState.Success() {
		return fmt.Errorf("the server ended with %v", s.command.ProcessState)
	}
	return nil
}
