package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

// filtered hides from everybody but root what has "secret" in its name.
func filtered(t *testing.T) *server.Server {
	s := paged(t, 4, 2)
	addItems(s, "i00secret")
	addItems(s, "i02secret")
	for _, name := range []string{"i00", "i00secret"} {
		s.MustSetPromptCompletion(name, "x", echoCompletion)
		s.MustSetTemplateCompletion("test://"+name+"/{x}", "x", echoCompletion)
	}
	sees := func(req *servercontext.Request, name string) bool {
		info := req.TokenInfo()
		return !strings.Contains(name, "secret") || info != nil && info.UserID == "root"
	}
	s.SetToolFilter(func(_ context.Context, req *servercontext.Request, t *mcp.Tool) bool { return sees(req, t.Name) })
	s.SetPromptFilter(func(_ context.Context, req *servercontext.Request, p *mcp.Prompt) bool { return sees(req, p.Name) })
	s.SetResourceFilter(func(_ context.Context, req *servercontext.Request, uri string, _ *mcp.Resource) bool {
		return sees(req, uri)
	})
	s.SetTemplateFilter(func(_ context.Context, req *servercontext.Request, t *mcp.ResourceTemplate) bool {
		return sees(req, t.URITemplate)
	})
	return s
}

func asUser(user string) *server.Extra {
	return &server.Extra{TokenInfo: &auth.TokenInfo{UserID: user}}
}

func TestFiltersDecideWhoSeesWhat(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		s := filtered(t)
		root := newPeer(t, s, peerOptions{Version: version, Extra: asUser("root")})
		guest := newPeer(t, s, peerOptions{Version: version, Extra: asUser("guest")})
		for range 2 { // what one principal got must not be kept for another
			for method, list := range fourLists {
				names, pages := root.every(method, list, "name")
				assert.Equal(t, []string{"i00", "i00secret", "i01", "i02", "i02secret", "i03"}, names, method)
				assert.Equal(t, 3, pages)
				names, pages = guest.every(method, list, "name")
				assert.Equal(t, []string{"i00", "i01", "i02", "i03"}, names, method)
				assert.Equal(t, 2, pages, "pages are full in spite of what is hidden")
			}
		}
	}
}

func TestFiltersHoldOnUseToo(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		s := filtered(t)
		root := newPeer(t, s, peerOptions{Version: version, Extra: asUser("root")})
		guest := newPeer(t, s, peerOptions{Version: version, Extra: asUser("guest")})
		missing := notFoundCode(guest)
		for _, use := range []struct {
			method string
			params M
			code   int
		}{
			{"tools/call", M{"name": "i00secret"}, -32602},
			{"prompts/get", M{"name": "i00secret"}, -32602},
			{"resources/read", M{"uri": "test://i00secret"}, missing},
			{"resources/read", M{"uri": "test://i00secret/1"}, missing},
			{"resources/read", M{"uri": "test://i00/secret"}, missing},
			{"completion/complete", M{"ref": resourceRef("test://i00secret/{x}"), "argument": argument("x", "")}, -32602},
			{"completion/complete", M{"ref": resourceRef("test://i00secret/1"), "argument": argument("x", "")}, -32602},
		} {
			assert.Zero(t, root.Ask(use.method, use.params).Code(), "%v", use)
			hidden := guest.Refused(use.code, use.method, use.params)
			if use.method != "resources/read" {
				unknown := M{}
				for k, v := range use.params {
					unknown[k] = v
				}
				if _, ok := unknown["name"]; ok {
					unknown["name"] = "i00unknown"
				} else {
					unknown["ref"] = resourceRef("unknown://")
				}
				other := guest.Refused(use.code, use.method, unknown)
				assert.Equal(t, strings.Fields(other.Error.Message)[0], strings.Fields(hidden.Error.Message)[0], "hidden looks like unknown")
			}
		}
	}
	s := filtered(t)
	root, guest := newPeer(t, s, peerOptions{Extra: asUser("root")}), newPeer(t, s, peerOptions{Extra: asUser("guest")})
	root.Get("resources/subscribe", M{"uri": "test://i00secret"})
	guest.Refused(-32002, "resources/subscribe", M{"uri": "test://i00secret"})
	s.OnSubscribe(func(context.Context, *servercontext.Request, string) error { return nil })
	guest.Refused(-32002, "resources/subscribe", M{"uri": "test://i00secret"})
	guest.Get("resources/subscribe", M{"uri": "test://anything"})
}

func TestFilterMakesResultsPrivate(t *testing.T) {
	hints := map[string]server.CacheHint{}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"} {
		hints[method] = server.CacheHint{TTL: 1500_000_000, Public: true}
	}
	s := plain(t, &server.Options{CacheHints: hints})
	addItems(s, "a")
	p := newPeer(t, s, peerOptions{Version: "2026-07-28"})
	check := func(scope string) {
		for method := range hints {
			got := p.Get(method, M{"uri": "test://a"})
			assert.Equal(t, scope, got["cacheScope"], method)
			assert.Equal(t, 1500.0, got["ttlMs"], method)
		}
	}
	check("public")
	s.SetToolFilter(func(context.Context, *servercontext.Request, *mcp.Tool) bool { return true })
	s.SetPromptFilter(func(context.Context, *servercontext.Request, *mcp.Prompt) bool { return true })
	s.SetResourceFilter(func(context.Context, *servercontext.Request, string, *mcp.Resource) bool { return true })
	s.SetTemplateFilter(func(context.Context, *servercontext.Request, *mcp.ResourceTemplate) bool { return true })
	check("private")
	s.SetToolFilter(nil)
	assert.Equal(t, "public", p.Get("tools/list", nil)["cacheScope"])
}

func TestFilterThatPanicsHarmsOneRequest(t *testing.T) {
	s := paged(t, 1, 1)
	s.SetToolFilter(func(context.Context, *servercontext.Request, *mcp.Tool) bool { panic("no") })
	p := newPeer(t, s, peerOptions{})
	p.Refused(-32603, "tools/list", nil)
	p.Refused(-32603, "tools/call", M{"name": "i00"})
	p.Get("prompts/list", nil)
}
