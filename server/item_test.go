package server_test

import (
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

func TestIconsThatClientsMayLoad(t *testing.T) {
	for _, icon := range []mcp.Icon{
		{Source: "https://example.com/icon.png"},
		{Source: "https://example.com/icon.svg", MIMEType: "image/svg+xml", Sizes: []string{"any"}, Theme: "light"},
		{Source: "data:image/png;base64,AA==", Sizes: []string{"48x48", "96x96"}, Theme: "dark"},
	} {
		assert.NoError(t, addIcon(t, icon), icon.Source)
	}
	for name, icon := range map[string]mcp.Icon{
		"none":       {},
		"plain HTTP": {Source: "http://example.com/icon.png"},
		"script":     {Source: "javascript:alert(1)"},
		"file":       {Source: "file:///etc/passwd"},
		"relative":   {Source: "/icon.png"},
		"no host":    {Source: "https:///icon.png"},
		"theme":      {Source: "https://example.com/icon.png", Theme: "blue"},
		"size":       {Source: "https://example.com/icon.png", Sizes: []string{"48"}},
		"sizes":      {Source: "https://example.com/icon.png", Sizes: []string{"48x48", "48xx"}},
	} {
		assert.Error(t, addIcon(t, icon), name)
	}
	_, err := server.TryNew(&mcp.Implementation{Name: "a", Version: "1", Icons: []mcp.Icon{{Source: "ftp://x"}}}, nil)
	assert.Error(t, err)
}

func addIcon(t *testing.T, icon mcp.Icon) error {
	return server.AddPrompt(plain(t, nil), &mcp.Prompt{Name: "a", Icons: []mcp.Icon{icon}}, promptText(""))
}

func TestMetaKeysThatItemsMayHave(t *testing.T) {
	add := func(o *server.Options, key string) error {
		return server.AddPrompt(plain(t, o), &mcp.Prompt{Name: "a", Meta: mcp.Meta{key: 1}}, promptText(""))
	}
	for _, key := range []string{
		"a", "A1", "a.b_c-d", "com.example/a", "com.example/", "com.example.mcp/a", "example/a", "x-1.y2/z", "mcp/a", "ui/resourceUri",
	} {
		assert.NoError(t, add(nil, key), key)
	}
	for _, key := range []string{
		"io.modelcontextprotocol/a", "dev.mcp/a", "org.modelcontextprotocol.api/a", "com.mcp.tools/", "io.modelcontextprotocol/",
		"", "/a", "a..b/c", ".a/b", "a-/b", "1a/b", "a b", "-a", "a-", "com.example/a b", "com.example/-a", "com.exämple/a", strings.Repeat("a", 300) + " ",
	} {
		assert.Error(t, add(nil, key), key)
	}
	extension := &server.Options{Extensions: map[string]map[string]any{"io.modelcontextprotocol/ui": {}}}
	assert.NoError(t, add(extension, "io.modelcontextprotocol/ui"))
	assert.NoError(t, add(extension, "io.modelcontextprotocol/ui-resource"))
	assert.Error(t, add(extension, "io.modelcontextprotocol/uis"))
}

func TestItemsAreCheckedWhereTheyAreRegistered(t *testing.T) {
	err := server.AddTool(plain(t, nil), &mcp.Tool{Name: "a", Meta: mcp.Meta{"dev.mcp/x": 1}}, noTool)
	assert.ErrorContains(t, err, `tool "a"`)
	assert.Error(t, server.AddTool(plain(t, nil), &mcp.Tool{Name: "a", Icons: []mcp.Icon{{Source: "x"}}}, noTool))
	assert.Error(t, server.AddResource(plain(t, nil), &mcp.Resource{URI: "test://a", Name: "a", Meta: mcp.Meta{"dev.mcp/x": 1}}, readText("")))
}
