package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type job struct {
	Region string `json:"region" jsonschema:"enum=eu,enum=us" jsonschema_description:"where"`
	Limit  int    `json:"limit,omitempty" jsonschema:"minimum=1,default=10"`
	Blob   []byte `json:"blob,omitempty"`
}

type jobResult struct {
	Closed int   `json:"closed"`
	IDs    []int `json:"ids"`
}

func jobServer(t *testing.T) *server.Server {
	s := plain(t, nil)
	yes := true
	server.MustAddTool(s, &mcp.Tool{
		Name: "close", Title: "Close", Description: "d", Annotations: &mcp.ToolAnnotations{Title: "C", DestructiveHint: &yes},
		Icons: []mcp.Icon{{Source: "https://example.com/i.png"}}, Meta: mcp.Meta{"com.example/x": 1},
	}, func(_ context.Context, _ *servercontext.Request, in job) (jobResult, error) {
		return jobResult{Closed: in.Limit + len(in.Blob)}, nil
	})
	return s
}

func TestToolDefinitionInEveryRevision(t *testing.T) {
	eachRevision(t, func() *server.Server { return jobServer(t) }, func(t *testing.T, p *peer) {
		tool := at(t, p.Get("tools/list", nil), "tools", 0).(M)
		assert.Equal(t, "object", at(t, tool, "inputSchema", "type"))
		assert.Equal(t, "base64", at(t, tool, "inputSchema", "properties", "blob", "contentEncoding"), "bytes are text, not an array of numbers")
		assert.Equal(t, p.atLeast("2025-03-26"), tool["annotations"] != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), tool["title"] != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), tool["_meta"] != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), tool["outputSchema"] != nil)
		assert.Equal(t, p.atLeast("2025-11-25"), tool["icons"] != nil)

		got := p.Get("tools/call", M{"name": "close", "arguments": M{"region": "eu", "blob": "AAAA"}})
		assert.Equal(t, `{"closed":13,"ids":null}`, at(t, got, "content", 0, "text"), "the structured result as text; defaults applied")
		assert.Equal(t, p.atLeast("2025-06-18"), got["structuredContent"] != nil)
		assert.Equal(t, p.atLeast("2026-07-28"), got["resultType"] != nil)
	})
}

func TestToolInputErrorsAreResults(t *testing.T) {
	eachRevision(t, func() *server.Server {
		s := jobServer(t)
		s.MustAddRawTool(&mcp.Tool{Name: "raw", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"enum":["eu"]},"limit":{"type":"integer"}},"required":["region"],"additionalProperties":false}`)},
			func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
				t.Error("called with arguments that do not fit")
				return nil, nil
			})
		return s
	}, func(t *testing.T, p *peer) {
		for _, tool := range []string{"close", "raw"} {
			for arguments, names := range map[string]string{
				`{}`:                           "region",
				`{"region":"mars"}`:            "region",
				`{"region":"eu","limit":"x"}`:  "limit",
				`{"region":"eu","Region":"x"}`: "Region",
			} {
				got := p.Get("tools/call", M{"name": tool, "arguments": json.RawMessage(arguments)})
				assert.Equal(t, true, got["isError"], "%s %s", tool, arguments)
				assert.Contains(t, at(t, got, "content", 0, "text"), names, "the model is told which field")
			}
		}
		p.Refused(-32602, "tools/call", M{"name": "unknown"})
		p.Refused(-32602, "tools/call", M{"name": 7})
		p.Refused(-32602, "tools/call", M{"name": "close", "arguments": []any{}})
	})
}

func TestToolErrors(t *testing.T) {
	s := plain(t, nil)
	for name, err := range map[string]error{
		"error":    errors.New("disk full"),
		"protocol": &sdkrpc.Error{Code: -31000, Message: "mine"},
	} {
		fail := func() error { return err }
		s.MustAddRawTool(&mcp.Tool{Name: "raw-" + name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, fail()
		})
		server.MustAddTool(s, &mcp.Tool{Name: "typed-" + name}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", fail() })
	}
	p := newPeer(t, s, peerOptions{})
	for _, kind := range []string{"raw-", "typed-"} {
		got := p.Get("tools/call", M{"name": kind + "error"})
		assert.Equal(t, M{"isError": true, "content": []any{M{"type": "text", "text": "disk full"}}}, got)
		p.Refused(-31000, "tools/call", M{"name": kind + "protocol"})
	}
}

// A schema that a user gives is listed byte for byte, whatever keywords it has.
func TestToolSchemaIsListedAsGiven(t *testing.T) {
	schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"address":{"$anchor":"addressDef","type":"object"}},` +
		`"type":"object","properties":{"z":{"$ref":"#/$defs/address"},"a":{"type":"number","maximum":1.50}},"allOf":[{"anyOf":[{"required":["z"]}]}],` +
		`"if":{"required":["a"]},"then":{},"else":{},"x-vendor":{"k":[1e2]},"additionalProperties":false}`
	s := plain(t, nil)
	s.MustAddRawTool(&mcp.Tool{Name: "raw", InputSchema: json.RawMessage(schema)}, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
		return nil, nil
	})
	eachRevision(t, func() *server.Server { return s }, func(t *testing.T, p *peer) {
		assert.Contains(t, p.Ask("tools/list", nil).Raw, `"inputSchema":`+schema)
	})
}

func TestToolRegistrationErrors(t *testing.T) {
	s := plain(t, nil)
	raw := func(schema string) error {
		return s.AddRawTool(&mcp.Tool{Name: "a", InputSchema: json.RawMessage(schema)}, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, nil
		})
	}
	for name, err := range map[string]error{
		"nil tool":    server.AddTool(s, nil, noTool),
		"nil handler": server.AddTool[struct{}, string](s, &mcp.Tool{Name: "a"}, nil),
		"no name":     server.AddTool(s, &mcp.Tool{}, noTool),
		"name":        server.AddTool(s, &mcp.Tool{Name: "a b"}, noTool),
		"long name":   server.AddTool(s, &mcp.Tool{Name: strings.Repeat("a", 129)}, noTool),
		"no schema": s.AddRawTool(&mcp.Tool{Name: "a"}, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, nil
		}),
		"null schema":     raw(`null`),
		"no object":       raw(`{"type":"string"}`),
		"untyped":         raw(`{}`),
		"network":         raw(`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`),
		"dialect":         raw(`{"$schema":"https://example.com/dialect","type":"object"}`),
		"malformed":       raw(`{"type":`),
		"deep":            raw(strings.Repeat(`{"type":"object","properties":{"a":`, 200) + `{}` + strings.Repeat(`}}`, 200)),
		"header on array": raw(`{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}`),
	} {
		var r *server.RegistrationError
		require.ErrorAs(t, err, &r, name)
	}
	newPeer(t, s, peerOptions{}).Refused(-32601, "tools/list", nil)
}

// Names are what the specification's page on tools says, byte for byte.
func TestTool_Names(t *testing.T) {
	add := func(name string) error {
		return plain(t, nil).AddRawTool(&mcp.Tool{Name: name, InputSchema: M{"type": "object"}},
			func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
				return nil, nil
			})
	}
	for c := range 256 {
		name := "a" + string(rune(c)) + "b"
		valid := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-' || c == '.'
		if err := add(name); valid {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, "allowed are A-Z, a-z, 0-9, ., _ and -", name)
		}
	}
	require.NoError(t, add(strings.Repeat("x", 128)))
	require.ErrorContains(t, add(strings.Repeat("x", 129)), "longer than 128")
	require.ErrorContains(t, add(""), "the name is empty")
}
