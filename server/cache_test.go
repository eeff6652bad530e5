package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

func hintOf(m M) []any { return []any{m["ttlMs"], m["cacheScope"]} }

func TestCacheHintsByMethod(t *testing.T) {
	eachRevision(t, func() *server.Server {
		s := plain(t, &server.Options{PageSize: 2, CacheHints: map[string]server.CacheHint{
			"server/discover": {TTL: time.Minute, Public: true},
			"tools/list":      {TTL: time.Second + 900*time.Microsecond, Public: true},
			"prompts/list":    {TTL: -time.Second},
		}})
		for _, name := range []string{"a", "b", "c"} {
			addItems(s, name)
		}
		return s
	}, func(t *testing.T, p *peer) {
		if p.handshake() {
			for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"} {
				got := p.Get(method, M{"uri": "test://a"})
				assert.NotContains(t, got, "ttlMs", method)
				assert.NotContains(t, got, "cacheScope", method)
				assert.NotContains(t, got, "resultType", method)
			}
			return
		}
		assert.Equal(t, []any{60000.0, "public"}, hintOf(p.Get("server/discover", nil)))
		first := p.Get("tools/list", nil)
		assert.Equal(t, []any{1000.0, "public"}, hintOf(first))
		assert.Equal(t, []any{1000.0, "public"}, hintOf(p.Get("tools/list", M{"cursor": first["nextCursor"]})), "all pages say the same")
		assert.Equal(t, []any{0.0, "private"}, hintOf(p.Get("prompts/list", nil)), "never negative")
		assert.Equal(t, []any{0.0, "private"}, hintOf(p.Get("resources/list", nil)), "the default")
		assert.Equal(t, []any{0.0, "private"}, hintOf(p.Get("resources/read", M{"uri": "test://a"})))
	})
}

func TestCacheHintsByResource(t *testing.T) {
	s := plain(t, &server.Options{CacheHints: map[string]server.CacheHint{"resources/read": {TTL: time.Second, Public: true}}})
	own := &server.ResourceOptions{Cache: &server.CacheHint{TTL: time.Hour}}
	says := func(c mcp.Cacheable) server.ResourceHandler {
		return func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Cacheable: c, Contents: []*mcp.ResourceContents{{URI: "test://x"}}}, nil
		}
	}
	s.MustAddResource(&mcp.Resource{URI: "test://default", Name: "r"}, says(mcp.Cacheable{}))
	s.MustAddResource(&mcp.Resource{URI: "test://own", Name: "r"}, says(mcp.Cacheable{}), own)
	s.MustAddResource(&mcp.Resource{URI: "test://handler", Name: "r"}, says(mcp.Cacheable{TTLMs: 5, CacheScope: "public"}), own)
	s.MustAddResource(&mcp.Resource{URI: "test://time", Name: "r"}, says(mcp.Cacheable{TTLMs: 5}), own)
	s.MustAddResource(&mcp.Resource{URI: "test://never", Name: "r"}, says(mcp.Cacheable{TTLMs: -5, CacheScope: "private"}))
	s.MustAddResource(&mcp.Resource{URI: "test://bad", Name: "r"}, says(mcp.Cacheable{CacheScope: "everybody"}))
	s.MustAddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://t/{x}", Name: "t"}, says(mcp.Cacheable{}), own)
	p := newPeer(t, s, peerOptions{Version: "2026-07-28"})
	for uri, want := range map[string][]any{
		"test://default": {1000.0, "public"},
		"test://own":     {3600000.0, "private"},
		"test://handler": {5.0, "public"},
		"test://time":    {5.0, "private"},
		"test://never":   {0.0, "private"},
		"test://bad":     {1000.0, "public"},
		"test://t/1":     {3600000.0, "private"},
	} {
		assert.Equal(t, want, hintOf(p.Get("resources/read", M{"uri": uri})), uri)
	}
}

// What a retry with input has led to is not for the cache: the input is no part
// of its key. A result that asks for input has no hints at all.
func TestCacheHintsAndInput(t *testing.T) {
	s := plain(t, &server.Options{CacheHints: map[string]server.CacheHint{"resources/read": {TTL: time.Second, Public: true}}})
	s.MustAddResource(&mcp.Resource{URI: "test://a", Name: "a"}, func(_ context.Context, req *servercontext.Request, _ server.ReadIn) (*mcp.ReadResourceResult, error) {
		if len(req.InputResponses()) == 0 {
			return &mcp.ReadResourceResult{InputRequests: mcp.InputRequestMap{"q": form}}, nil
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://a", Text: "answered"}}}, nil
	})
	p := newPeer(t, s, peerOptions{Version: "2026-07-28", Caps: allCaps})
	first := p.Get("resources/read", M{"uri": "test://a"})
	assert.Equal(t, "input_required", first["resultType"])
	for _, absent := range []string{"ttlMs", "cacheScope", "contents"} {
		assert.NotContains(t, first, absent)
	}
	second := p.Get("resources/read", M{"uri": "test://a", "inputResponses": M{"q": accepted}})
	assert.Equal(t, "answered", at(t, second, "contents", 0, "text"))
	assert.Equal(t, []any{0.0, "private"}, hintOf(second))
}
