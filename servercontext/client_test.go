package servercontext_test

import (
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func client(t *testing.T, capabilities string) *servercontext.Client {
	t.Helper()
	c, err := servercontext.NewClient(nil, json.RawMessage(capabilities))
	require.NoError(t, err)
	return c
}

// Capabilities are named by their path; presence counts, not content.
func TestClient_Has(t *testing.T) {
	for declared, tt := range map[string]struct{ has, lacks []string }{
		``:                                      {nil, []string{"sampling", "roots", "elicitation.form", ""}},
		`{}`:                                    {nil, []string{"sampling", "roots", "elicitation", "elicitation.form", "elicitation.url"}},
		`{"roots":{}}`:                          {[]string{"roots"}, []string{"roots.listChanged", "Roots"}},
		`{"roots":null}`:                        {nil, []string{"roots"}},
		`{"elicitation":{}}`:                    {[]string{"elicitation", "elicitation.form"}, []string{"elicitation.url"}},
		`{"elicitation":null}`:                  {nil, []string{"elicitation", "elicitation.form"}},
		`{"sampling":{"tools":{}}}`:             {[]string{"sampling", "sampling.tools"}, []string{"sampling.context"}},
		`{"sampling":{"tools":null}}`:           {[]string{"sampling"}, []string{"sampling.tools"}},
		`{"elicitation":{"url":{}}}`:            {[]string{"elicitation", "elicitation.url"}, []string{"elicitation.form"}},
		`{"elicitation":{"form":{}}}`:           {[]string{"elicitation.form"}, []string{"elicitation.url"}},
		`{"elicitation":{"form":{},"url":{}}}`:  {[]string{"elicitation.form", "elicitation.url"}, nil},
		`{"roots":{"listChanged":true}}`:        {[]string{"roots.listChanged"}, nil},
		`{"roots":{"listChanged":false}}`:       {[]string{"roots"}, []string{"roots.listChanged"}},
		`{"extensions":{"com.example/a.b":{}}}`: {[]string{"extensions.com.example/a.b"}, []string{"extensions.com", "extensions.com.example/a"}},
		`{"experimental":{"x":{}}, "unknown":{"deep":{"er":{}}}}`: {[]string{"experimental.x", "unknown", "unknown.deep"}, []string{"unknown.deep.er"}},
		`{"s\u0061mpling":{}}`: {[]string{"sampling"}, nil},
	} {
		c := client(t, declared)
		for _, name := range tt.has {
			require.True(t, c.Has(name), "%s has %s", declared, name)
		}
		for _, name := range tt.lacks {
			require.False(t, c.Has(name), "%s has no %s", declared, name)
		}
	}
	require.False(t, (*servercontext.Client)(nil).Has("sampling"))
	require.False(t, (&servercontext.Client{}).Has("sampling"))
}

func TestNewClient(t *testing.T) {
	c, err := servercontext.NewClient(json.RawMessage(`{"name":"c","version":"1","Title":"not the title"}`), json.RawMessage(`{"roots":{"listChanged":true}}`))
	require.NoError(t, err)
	require.Equal(t, "c", c.Info.Name)
	require.Empty(t, c.Info.Title, "names match case-sensitively")
	require.True(t, c.Capabilities.RootsV2.ListChanged)
	none, err := servercontext.NewClient(nil, nil)
	require.NoError(t, err)
	require.Nil(t, none.Info)
	require.NotNil(t, none.Capabilities)
	require.Nil(t, none.Capabilities.RootsV2)
	for _, bad := range [][2]string{{`7`, ``}, {`{"name":7}`, ``}, {``, `[]`}, {``, `{"sampling":7}`}, {``, `{"roots":7}`}, {``, `{"elicitation":"x"}`}} {
		_, err := servercontext.NewClient(json.RawMessage(bad[0]), json.RawMessage(bad[1]))
		require.Error(t, err, "%v", bad)
	}
}

// What is missing is named in the way the revision has for it, and only that.
func TestRequireClientCapability(t *testing.T) {
	meta := json.RawMessage(`{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}`)
	for name, tt := range map[string]struct {
		need []string
		data string // "": nothing is missing
	}{
		"nothing":        {nil, ""},
		"declared":       {[]string{"sampling"}, ""},
		"one":            {[]string{"roots"}, `{"requiredCapabilities":{"roots":{}}}`},
		"one of two":     {[]string{"sampling", "roots"}, `{"requiredCapabilities":{"roots":{}}}`},
		"nested":         {[]string{"sampling.tools"}, `{"requiredCapabilities":{"sampling":{"tools":{}}}}`},
		"of one kind":    {[]string{"elicitation.url", "elicitation.form"}, `{"requiredCapabilities":{"elicitation":{"url":{},"form":{}}}}`},
		"extension":      {[]string{"extensions.io.modelcontextprotocol/tasks"}, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`},
		"with its parts": {[]string{"roots", "roots.listChanged"}, `{"requiredCapabilities":{"roots":{"listChanged":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			stateless := servercontext.New(servercontext.Options{Meta: meta, Stateless: true})
			handshake := servercontext.New(servercontext.Options{Client: client(t, `{"sampling":{}}`)})
			if tt.data == "" {
				require.NoError(t, stateless.RequireClientCapability(tt.need...))
				require.NoError(t, handshake.RequireClientCapability(tt.need...))
				return
			}
			var e *sdkrpc.Error
			require.ErrorAs(t, stateless.RequireClientCapability(tt.need...), &e)
			require.EqualValues(t, mcp.CodeMissingRequiredClientCapabilities, e.Code)
			require.JSONEq(t, tt.data, string(e.Data))
			require.ErrorAs(t, handshake.RequireClientCapability(tt.need...), &e)
			require.EqualValues(t, sdkrpc.CodeInvalidRequest, e.Code)
			require.Empty(t, e.Data)
			require.Contains(t, e.Message, tt.need[len(tt.need)-1])
		})
	}
}

// Malformed capabilities in _meta count as none.
func TestClientCapabilities_OfMeta(t *testing.T) {
	for _, meta := range []string{`{}`, `{"io.modelcontextprotocol/clientCapabilities":{"sampling":7}}`, `{"io.modelcontextprotocol/clientCapabilities":7}`, `x`, ``} {
		r := servercontext.New(servercontext.Options{Meta: json.RawMessage(meta)})
		require.NotNil(t, r.ClientCapabilities())
		require.Nil(t, r.ClientInfo())
		require.False(t, r.HasClientCapability("sampling"))
	}
	r := servercontext.New(servercontext.Options{Meta: json.RawMessage(`{"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}`)})
	require.Equal(t, "c", r.ClientInfo().Name)
	require.NotNil(t, r.ClientCapabilities().Sampling)
	require.Same(t, r.ClientCapabilities(), r.ClientCapabilities(), "it is decoded once")
}
