package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// thinking keeps chains of thoughts, with a resource per chain.
type thinking struct {
	mu     sync.Mutex
	chains map[string][]string
}

type (
	beginIn struct {
		ID      string `json:"id"`
		Problem string `json:"problem"`
	}
	thinkIn struct {
		ID      string `json:"id"`
		Thought string `json:"thought"`
		Revise  *int   `json:"revise,omitempty" jsonschema:"the thought to replace, from 1"`
	}
)

func newThinking() *thinking { return &thinking{chains: map[string][]string{}} }

func (k *thinking) register(r registry) {
	addTool(r, &mcp.Tool{Name: "begin", Description: "begins a chain"}, k.begin)
	addTool(r, &mcp.Tool{Name: "think"}, k.think)
	r.AddResource(&mcp.Resource{Name: "chains", URI: "thought://all", MIMEType: "application/json"}, k.all)
	r.AddResourceTemplate(&mcp.ResourceTemplate{Name: "chain", URITemplate: "thought://chain/{id}", MIMEType: "text/plain"}, k.one)
	r.AddPrompt(&mcp.Prompt{Name: "plan", Arguments: []*mcp.PromptArgument{{Name: "topic", Required: true}, {Name: "tone"}}}, k.plan)
}

func (k *thinking) begin(_ context.Context, _ *mcp.CallToolRequest, in beginIn) (*mcp.CallToolResult, any, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.chains[in.ID] = []string{in.Problem}
	return &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.TextContent{Text: "begun"},
		&mcp.ResourceLink{URI: "thought://chain/" + in.ID, Name: in.ID},
	}}, nil, nil
}

func (k *thinking) think(_ context.Context, _ *mcp.CallToolRequest, in thinkIn) (*mcp.CallToolResult, any, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	chain, ok := k.chains[in.ID]
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("no chain %q", in.ID)
	case in.Revise == nil:
		chain = append(chain, in.Thought)
	case *in.Revise < 1 || *in.Revise > len(chain):
		r := &mcp.CallToolResult{}
		r.SetError(fmt.Errorf("no thought %d", *in.Revise))
		return r, nil, nil
	default:
		chain[*in.Revise-1] = in.Thought
	}
	k.chains[in.ID] = chain
	return nil, M{"thoughts": len(chain)}, nil
}

func (k *thinking) all(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	raw, err := json.Marshal(k.chains)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{Text: string(raw)}}}, err
}

func (k *thinking) one(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	chain, ok := k.chains[strings.TrimPrefix(req.Params.URI, "thought://chain/")]
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
		{Text: strings.Join(chain, "\n")},
		{URI: "thought://raw", MIMEType: "application/octet-stream", Blob: []byte{1, 2}},
	}}, nil
}

func (k *thinking) plan(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{Description: "a plan", Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "plan " + req.Params.Arguments["topic"] + req.Params.Arguments["tone"]}},
	}}, nil
}

func playThinking(s *script) {
	ctx := s.t.Context()
	s.tools()
	s.call("begin", M{"id": "x", "problem": "why"})
	s.call("think", M{"id": "x", "thought": "because"})
	s.call("think", M{"id": "x", "thought": "so", "revise": 2})
	s.call("think", M{"id": "x", "thought": "so", "revise": 9})
	s.call("think", M{"id": "y", "thought": "so"})
	s.call("think", M{"id": "y"})
	for _, uri := range []string{"thought://all", "thought://chain/x", "thought://chain/none", "thought://nowhere"} {
		r, err := s.cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err == nil {
			s.note(uri, r.Contents, nil)
		} else {
			s.note(uri, nil, err)
		}
	}
	resources, err := s.cs.ListResources(ctx, nil)
	s.note("resources", resources.Resources, err)
	templates, err := s.cs.ListResourceTemplates(ctx, nil)
	s.note("templates", templates.ResourceTemplates, err)
	prompts, err := s.cs.ListPrompts(ctx, nil)
	s.note("prompts", prompts.Prompts, err)
	prompt, err := s.cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "plan", Arguments: map[string]string{"topic": "tea"}})
	s.note("plan", prompt, err)
	_, err = s.cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "none"})
	s.note("none", nil, err)
}
