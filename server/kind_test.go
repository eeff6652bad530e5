package server_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

// Every kind of handler gets the token of its request, and its request is silent
// once it was cancelled.
func TestEveryKindOfHandlerSeesTheCancel(t *testing.T) {
	for _, kind := range []struct {
		name, method string
		params       M
		handshake    bool // only there
	}{
		{name: "prompt", method: "prompts/get", params: M{"name": "wait"}},
		{name: "resource", method: "resources/read", params: M{"uri": "test://wait"}},
		{name: "template", method: "resources/read", params: M{"uri": "wait://a"}},
		{name: "lister", method: "resources/list"},
		{name: "completion", method: "completion/complete", params: M{"ref": promptRef("wait"), "argument": argument("x", "")}},
		{name: "subscription", method: "resources/subscribe", params: M{"uri": "other://x"}, handshake: true},
		{name: "tool filter", method: "tools/list"},
		{name: "custom method", method: "acme/wait"},
	} {
		for _, version := range server.Versions() {
			if kind.handshake && version == "2026-07-28" {
				continue
			}
			t.Run(kind.name+" "+version, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					var seen *cancellation.Error
					p := newPeer(t, waiting(t, &seen), peerOptions{Version: version})
					p.Request(1, kind.method, kind.params)
					p.Pending(1)
					assert.Nil(t, seen)
					p.Cancel(1, "user pressed stop")
					p.Silent(1)
					assert.NotNil(t, seen, "the handler did not see it")
					assert.Equal(t, &cancellation.Error{Origin: cancellation.Peer, Reason: "user pressed stop"}, seen)
				})
			})
		}
	}
}

// waiting is a server whose handlers all wait until they are cancelled.
func waiting(t *testing.T, seen **cancellation.Error) *server.Server {
	wait := func(ctx context.Context, req *servercontext.Request) error {
		assert.False(t, req.Cancelled())
		<-cancellation.FromContext(ctx).Done()
		assert.True(t, req.Cancelled())
		*seen, _ = context.Cause(ctx).(*cancellation.Error)
		return context.Cause(ctx)
	}
	s := plain(t, nil)
	server.MustAddPrompt(s, &mcp.Prompt{Name: "wait", Arguments: []*mcp.PromptArgument{{Name: "x"}}}, func(ctx context.Context, req *servercontext.Request, _ map[string]string) (string, error) {
		return "", wait(ctx, req)
	})
	read := func(ctx context.Context, req *servercontext.Request, _ server.ReadIn) (string, error) {
		return "", wait(ctx, req)
	}
	server.MustAddResource(s, &mcp.Resource{URI: "test://wait", Name: "wait"}, read)
	server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: "wait://{tag}", Name: "wait"}, read)
	s.MustAddResourceLister("wait", func(ctx context.Context, req *servercontext.Request, _ string, _ int) ([]*mcp.Resource, string, error) {
		return nil, "", wait(ctx, req)
	})
	s.SetCompletion(func(ctx context.Context, req *servercontext.Request, _ server.CompleteIn) (*mcp.CompletionResultDetails, error) {
		return nil, wait(ctx, req)
	})
	s.OnSubscribe(func(ctx context.Context, req *servercontext.Request, _ string) error { return wait(ctx, req) })
	addNamed(s, "a")
	s.SetToolFilter(func(ctx context.Context, req *servercontext.Request, _ *mcp.Tool) bool { return wait(ctx, req) == nil })
	server.MustAddMethod(s, "acme/wait", func(ctx context.Context, req *servercontext.Request, _ struct{}) (any, error) {
		return nil, wait(ctx, req)
	})
	return s
}
