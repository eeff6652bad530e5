package server_test

import (
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

// capabilitiesOf returns what a peer of that revision is told.
func capabilitiesOf(t *testing.T, s *server.Server, version string) M {
	t.Helper()
	p := newPeer(t, s, peerOptions{Version: version, Raw: true})
	if !p.handshake() {
		return p.Get("server/discover", nil)["capabilities"].(M)
	}
	m := p.Initialize(version)
	return m.object(t, m.Result)["capabilities"].(M)
}

// methodsOf are the methods of each capability.
var methodsOf = map[string][]string{
	"tools":       {"tools/list", "tools/call"},
	"prompts":     {"prompts/list", "prompts/get"},
	"resources":   {"resources/list", "resources/templates/list", "resources/read"},
	"completions": {"completion/complete"},
	"logging":     {"logging/setLevel"},
}

func TestCapabilitiesFollowWhatIsRegistered(t *testing.T) {
	for name, register := range map[string]func(*server.Server){
		"tools":       func(s *server.Server) { addNamed(s, "a") },
		"prompts":     func(s *server.Server) { server.MustAddPrompt(s, &mcp.Prompt{Name: "a"}, promptText("")) },
		"resources":   func(s *server.Server) { addTemplate(s, "test://{id}") },
		"completions": func(s *server.Server) { s.SetCompletion(echoCompletion) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range server.Versions() {
				s := plain(t, &server.Options{NoLogging: true})
				assert.Empty(t, capabilitiesOf(t, s, version), "nothing is registered")
				register(s)
				got := capabilitiesOf(t, s, version)
				if name == "completions" && version == "2024-11-05" {
					assert.Empty(t, got, "the capability came with 2025-03-26")
				} else {
					assert.Len(t, got, 1)
					assert.Contains(t, got, name)
				}
				p := newPeer(t, s, peerOptions{Version: version})
				for capability, methods := range methodsOf {
					for _, method := range methods {
						code := p.Ask(method, nil).Code()
						assert.Equal(t, capability != name, code == -32601, "%s in %s: %d", method, version, code)
					}
				}
			}
		})
	}
}

func TestCapabilitiesCanBeReplaced(t *testing.T) {
	s := plain(t, &server.Options{Capabilities: &mcp.ServerCapabilities{Prompts: &mcp.PromptCapabilities{}}})
	addNamed(s, "a")
	assert.Equal(t, M{"prompts": M{}}, capabilitiesOf(t, s, "2025-11-25"))
	p := newPeer(t, s, peerOptions{})
	p.Refused(-32601, "tools/list", nil)
	p.Refused(-32601, "tools/call", M{"name": "a"})
	p.Refused(-32601, "logging/setLevel", M{"level": "debug"})
	assert.Equal(t, []any{}, p.Get("prompts/list", nil)["prompts"])
}

func TestCapabilitiesOfExtensions(t *testing.T) {
	s := plain(t, &server.Options{NoLogging: true, Extensions: map[string]map[string]any{"com.example/x": nil, "com.example/y": {"z": 1}}})
	assert.Equal(t, M{"extensions": M{"com.example/x": M{}, "com.example/y": M{"z": 1.0}}}, capabilitiesOf(t, s, "2026-07-28"))
	assert.Empty(t, capabilitiesOf(t, s, "2025-11-25"), "older revisions have no extensions")
}

func TestResourceCapabilitySubscribe(t *testing.T) {
	s := plain(t, &server.Options{Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{}}})
	server.MustAddResource(s, &mcp.Resource{URI: "test://a", Name: "a"}, readText(""))
	p := newPeer(t, s, peerOptions{})
	p.Get("resources/list", nil)
	p.Refused(-32601, "resources/subscribe", M{"uri": "test://a"})
	p.Refused(-32601, "resources/unsubscribe", M{"uri": "test://a"})
}

func TestMethodsThatTheStatelessEraDoesNotHave(t *testing.T) {
	s := plain(t, nil)
	server.MustAddResource(s, &mcp.Resource{URI: "test://a", Name: "a"}, readText(""))
	p := newPeer(t, s, peerOptions{Version: "2026-07-28"})
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"} {
		p.Refused(-32601, method, M{"uri": "test://a", "level": "debug"})
	}
}
