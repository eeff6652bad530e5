package server_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func says(text string) server.Handler {
	return func(context.Context, *servercontext.Request) (any, error) { return M{"said": text}, nil }
}

func reviews() *server.Extension {
	return &server.Extension{ID: "com.example/reviews", Settings: map[string]any{"deep": true}, Methods: []server.ExtensionMethod{
		{Name: "reviews/ask", Handler: says("asked")},
		{Name: "reviews/list", Handler: says("listed"), Undeclared: true},
	}}
}

// A method that asks nothing of clients is open to those that declare nothing.
func TestExtensionMethodsAreForThoseThatDeclareIt(t *testing.T) {
	s := plain(t, nil)
	require.NoError(t, s.AddExtension(reviews()))
	knowing := newPeer(t, s, peerOptions{Version: server.Version20260728, Caps: M{"extensions": M{"com.example/reviews": M{}}}})
	assert.Equal(t, "asked", knowing.Get("reviews/ask", nil)["said"])
	assert.Equal(t, "listed", knowing.Get("reviews/list", nil)["said"])

	ignorant := newPeer(t, s, peerOptions{Version: server.Version20260728})
	assert.Equal(t, "listed", ignorant.Get("reviews/list", nil)["said"])
	ignorant.Request(1, "reviews/ask", nil)
	refused := ignorant.Answer(1).Error
	require.NotNil(t, refused)
	assert.Equal(t, -32021, refused.Code)
	assert.JSONEq(t, `{"requiredCapabilities":{"extensions":{"com.example/reviews":{}}}}`, string(refused.Data))

	old := newPeer(t, s, peerOptions{})
	old.Request(1, "reviews/list", nil)
	require.NotNil(t, old.Answer(1).Error)
	assert.Equal(t, -32601, old.Answer(1).Error.Code, "there are no extensions in the handshake era")
}

func TestExtensionIsAdvertised(t *testing.T) {
	s := plain(t, nil)
	require.NoError(t, s.AddExtension(reviews()))
	assert.Equal(t, M{"com.example/reviews": M{"deep": true}}, capabilitiesOf(t, s, server.Version20260728)["extensions"])
	assert.NotContains(t, capabilitiesOf(t, s, server.Version20251125), "extensions")
}

func TestExtensionsThatAreRefused(t *testing.T) {
	s := plain(t, nil)
	require.NoError(t, s.AddExtension(reviews()))
	for name, e := range map[string]*server.Extension{
		"nil":              nil,
		"no id":            {},
		"twice":            reviews(),
		"built in":         {ID: "com.example/a", Methods: []server.ExtensionMethod{{Name: "tools/list", Handler: says("")}}},
		"somebody else's":  {ID: "com.example/a", Methods: []server.ExtensionMethod{{Name: "reviews/ask", Handler: says("")}}},
		"without a name":   {ID: "com.example/a", Methods: []server.ExtensionMethod{{Handler: says("")}}},
		"without a method": {ID: "com.example/a", Methods: []server.ExtensionMethod{{Name: "a/b"}}},
	} {
		var refused *server.RegistrationError
		require.ErrorAs(t, s.AddExtension(e), &refused, name)
		assert.Equal(t, "extension", refused.Kind)
	}
	assert.Len(t, capabilitiesOf(t, s, server.Version20260728)["extensions"], 1)
}

// Extensions ask the filter before they tell of a resource.
func TestSeesResourceAsksTheFilter(t *testing.T) {
	s := plain(t, nil)
	require.NoError(t, s.AddExtension(&server.Extension{ID: "com.example/looks", Methods: []server.ExtensionMethod{{
		Name: "looks/at", Undeclared: true, Handler: func(ctx context.Context, req *servercontext.Request) (any, error) {
			return M{"open": s.SeesResource(ctx, req, "test://open"), "secret": s.SeesResource(ctx, req, "test://secret"), "filtered": s.FiltersResources()}, nil
		},
	}}}))
	p := newPeer(t, s, peerOptions{Version: server.Version20260728})
	got := p.Get("looks/at", nil)
	assert.Equal(t, []any{true, true, false}, []any{got["open"], got["secret"], got["filtered"]})
	s.SetResourceFilter(func(_ context.Context, req *servercontext.Request, uri string, _ *mcp.Resource) bool {
		return req.Method() == "looks/at" && uri != "test://secret"
	})
	got = p.Get("looks/at", nil)
	assert.Equal(t, []any{true, false, true}, []any{got["open"], got["secret"], got["filtered"]})
}
