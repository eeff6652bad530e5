package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Servers in the style of the official SDK's examples run on that SDK and on Heed. What
// differs is in official and ported alone: construction and serving.

// registry is what the servers use of a server.
type registry interface {
	AddTool(*mcp.Tool, mcp.ToolHandler)
	AddPrompt(*mcp.Prompt, mcp.PromptHandler)
	AddResource(*mcp.Resource, mcp.ResourceHandler)
	AddResourceTemplate(*mcp.ResourceTemplate, mcp.ResourceHandler)
	AddReceivingMiddleware(...mcp.Middleware)
	RemoveTools(...string)
	RemovePrompts(...string)
	RemoveResources(...string)
	RemoveResourceTemplates(...string)
	ResourceUpdated(context.Context, *mcp.ResourceUpdatedNotificationParams) error
	Run(context.Context, mcp.Transport) error
}

var (
	_ registry = (*mcp.Server)(nil)
	_ registry = (*gosdk.Server)(nil)
)

// addTool stands for mcp.AddTool in one and gosdk.MustAddTool in the other.
func addTool[In, Out any](r registry, t *mcp.Tool, h mcp.ToolHandlerFor[In, Out]) {
	if s, ok := r.(*mcp.Server); ok {
		mcp.AddTool(s, t, h)
		return
	}
	gosdk.MustAddTool(r.(*gosdk.Server), t, h)
}

func official(o *mcp.ServerOptions) registry { return mcp.NewServer(implementation(), o) }
func ported(o *mcp.ServerOptions) registry   { return gosdk.NewServer(implementation(), o, nil) }

// play lets an official client talk with a server and returns what it was told.
func play(t *testing.T, r registry, version string, conversation func(*script)) []string {
	t.Helper()
	s := &script{}
	cs, stop := run(t, r, version, s.options())
	defer stop()
	s.t, s.cs = t, cs
	conversation(s)
	return s.told
}

// script is one conversation.
type script struct {
	t    *testing.T
	cs   *mcp.ClientSession
	told []string

	arrived chan struct{} // gets one per notification
	mu      sync.Mutex
	events  []string // notifications that came; guarded by mu
}

func (s *script) event(format string, args ...any) {
	s.mu.Lock()
	s.events = append(s.events, fmt.Sprintf(format, args...))
	s.mu.Unlock()
	s.arrived <- struct{}{}
}

func (s *script) options() *mcp.ClientOptions {
	s.arrived = make(chan struct{}, 64)
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: M{"name": "Ada", "message": r.Params.Message}}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: "re: " + r.Params.SystemPrompt}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.event("progress %v %v/%v %s", r.Params.ProgressToken, r.Params.Progress, r.Params.Total, r.Params.Message)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			data, _ := r.Params.Data.(M)
			delete(data, "time")
			s.event("log %s %s %v", r.Params.Level, r.Params.Logger, data)
		},
	}
}

// notifications waits for n of them and notes them.
func (s *script) notifications(n int) {
	s.t.Helper()
	for range n {
		receive(s.t, s.arrived)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, s.events...)
	s.events = nil
}

func (s *script) note(what string, v any, err error) {
	s.t.Helper()
	if err != nil {
		s.told = append(s.told, what+": error")
		return
	}
	raw, err := json.Marshal(v)
	require.NoError(s.t, err)
	s.told = append(s.told, what+": "+string(raw))
}

// call calls a tool; the text copy of structured content is compared as JSON.
func (s *script) call(tool string, arguments any) *mcp.CallToolResult {
	s.t.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	p.SetProgressToken("tok")
	r, err := s.cs.CallTool(s.t.Context(), p)
	if err == nil && r.StructuredContent != nil {
		for _, c := range r.Content {
			if text, ok := c.(*mcp.TextContent); ok && strings.HasPrefix(text.Text, "{") {
				var v any
				require.NoError(s.t, json.Unmarshal([]byte(text.Text), &v))
				raw, _ := json.Marshal(v)
				text.Text = string(raw)
			}
		}
	}
	if err == nil && r.IsError && strings.Contains(text(s.t, r), "arguments") {
		r.Content = nil // the wording of what is wrong with arguments is Heed's
	}
	s.note(tool, r, err)
	return r
}

func (s *script) tools() {
	s.t.Helper()
	r, err := s.cs.ListTools(s.t.Context(), nil)
	require.NoError(s.t, err)
	s.note("tools", r.Tools, nil)
}

func run(t *testing.T, r registry, version string, o *mcp.ClientOptions) (*mcp.ClientSession, func()) {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Run(ctx, there) }()
	cs, err := mcp.NewClient(implementation(), o).Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	return cs, func() {
		defer cancel()
		if t.Failed() {
			cancel()
		}
		_ = cs.Close()
		receive(t, served)
	}
}

func TestPortedServersBehaveAsBefore(t *testing.T) {
	for name, c := range map[string]struct {
		options  *mcp.ServerOptions
		register func(registry)
		script   func(*script)
	}{
		"graph":    {nil, func(r registry) { newGraph().register(r) }, playGraph},
		"thinking": {nil, func(r registry) { newThinking().register(r) }, playThinking},
		"survey":   {surveyOptions(), registerSurvey, playSurvey},
		"greeter":  {&mcp.ServerOptions{Instructions: "be kind"}, registerGreeter, playGreeter},
	} {
		for _, version := range eras {
			t.Run(name+" "+version, func(t *testing.T) {
				before, after := official(c.options), ported(c.options)
				c.register(before)
				c.register(after)
				want := play(t, before, version, c.script)
				got := play(t, after, version, c.script)
				require.NotEmpty(t, want)
				assert.Equal(t, want, got)
			})
		}
	}
}

// The same servers keep their blocking calls in the stateless era, where the official SDK refuses
// them.
func TestPortedBlockingCallsInTheStatelessEra(t *testing.T) {
	r := ported(nil)
	registerSurvey(r)
	told := play(t, r, server.Version20260728, func(s *script) {
		s.call("ask", M{"question": "who?"})
		s.call("summarize", M{"text": "long"})
	})
	assert.Contains(t, told[0], "Ada")
	assert.Contains(t, told[1], "re: long")
	assert.False(t, slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "isError") }), told)
}
