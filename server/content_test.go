package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Content as each revision has it, from the oldest to the newest. "" repeats the
// revision before.
func TestContent_PerRevision(t *testing.T) {
	versions := []string{server.Version20241105, server.Version20250326, server.Version20250618, server.Version20251125, server.Version20260728}
	meta := mcp.Meta{"com.example/a": 1}
	notes := &mcp.Annotations{Audience: []mcp.Role{"user"}, Priority: 0.5, LastModified: "2025-01-01T00:00:00Z"}
	size := int64(3)
	for name, tt := range map[string]struct {
		content mcp.Content
		want    [5]string
	}{
		"text":       {&mcp.TextContent{Text: "a\n<b>&é\u2028\x00"}, [5]string{"{\"type\":\"text\",\"text\":\"a\\n<b>&é\u2028\\u0000\"}"}},
		"empty text": {&mcp.TextContent{}, [5]string{`{"type":"text","text":""}`}},
		"text with meta": {&mcp.TextContent{Text: "a", Meta: meta}, [5]string{
			`{"type":"text","text":"a"}`, "", `{"type":"text","text":"a","_meta":{"com.example/a":1}}`,
		}},
		"annotations": {&mcp.TextContent{Text: "a", Annotations: notes}, [5]string{
			`{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5}}`, "",
			`{"type":"text","text":"a","annotations":{"audience":["user"],"lastModified":"2025-01-01T00:00:00Z","priority":0.5}}`,
		}},
		"image":       {&mcp.ImageContent{Data: []byte{1, 2, 255}, MIMEType: "image/png"}, [5]string{`{"type":"image","data":"AQL/","mimeType":"image/png"}`}},
		"empty image": {&mcp.ImageContent{MIMEType: "image/png"}, [5]string{`{"type":"image","data":"","mimeType":"image/png"}`}},
		"audio": {&mcp.AudioContent{Data: []byte{1, 2}, MIMEType: "audio/wav"}, [5]string{
			`{"type":"text","text":"[audio, audio/wav, 2 bytes]"}`, `{"type":"audio","data":"AQI=","mimeType":"audio/wav"}`,
		}},
		"link": {&mcp.ResourceLink{URI: "test://a", Name: "a", Title: "A", Description: "d", MIMEType: "text/plain", Size: &size, Icons: []mcp.Icon{{Source: "https://example.com/i.png"}}}, [5]string{
			`{"type":"text","text":"A: test://a"}`, "",
			`{"type":"resource_link","uri":"test://a","name":"a","title":"A","description":"d","mimeType":"text/plain","size":3}`,
			`{"type":"resource_link","uri":"test://a","name":"a","title":"A","description":"d","mimeType":"text/plain","size":3,"icons":[{"src":"https://example.com/i.png"}]}`,
		}},
		"nameless link": {&mcp.ResourceLink{URI: "test://a"}, [5]string{`{"type":"text","text":"test://a"}`, "", `{"type":"resource_link","uri":"test://a","name":"test://a"}`}},
		"embedded text": {&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://a", MIMEType: "text/plain", Text: "x", Meta: meta}}, [5]string{
			`{"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":"x"}}`, "",
			`{"type":"resource","resource":{"uri":"test://a","mimeType":"text/plain","text":"x","_meta":{"com.example/a":1}}}`,
		}},
		"embedded empty text": {&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://a"}}, [5]string{`{"type":"resource","resource":{"uri":"test://a","text":""}}`}},
		"embedded blob":       {&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://a", Blob: []byte{255}}}, [5]string{`{"type":"resource","resource":{"uri":"test://a","blob":"/w=="}}`}},
		"embedded empty blob": {&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://a", Blob: []byte{}}}, [5]string{`{"type":"resource","resource":{"uri":"test://a","blob":""}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			for i, version := range versions {
				if tt.want[i] != "" {
					want = tt.want[i]
				}
				inBubbleWith(t, nil, peerOptions{Version: version}, func(t *testing.T, f *fixture, p *peer) {
					server.MustAddTool(f.Server, &mcp.Tool{Name: "content"}, func(context.Context, *servercontext.Request, struct{}) (mcp.Content, error) { return tt.content, nil })
					p.Call(1, "content", nil)
					var r struct {
						Content []json.RawMessage `json:"content"`
					}
					require.NoError(t, json.Unmarshal(p.Answer(1).Result, &r), p.Answer(1).Raw)
					require.Len(t, r.Content, 1)
					assert.JSONEq(t, want, string(r.Content[0]), version)
				})
			}
		})
	}
}

// Structured content, with its copy as text, in revisions that have it and in those
// whose structured content must be an object.
func TestContent_StructuredPerRevision(t *testing.T) {
	type out struct {
		N int `json:"n"`
	}
	for name, tt := range map[string]struct {
		add           func(*server.Server, ...*server.ToolOptions)
		text          string
		object, newer string // structuredContent until 2025-11-25 and after; "": none
	}{
		"object": {structured(out{N: 1}), `{"n":1}`, `{"n":1}`, `{"n":1}`},
		"array":  {structured([]int{1, 2}), `[1,2]`, `{"result":[1,2]}`, `[1,2]`},
		"number": {structured(7), `7`, `{"result":7}`, `7`},
		"bool":   {structured(false), `false`, `{"result":false}`, `false`},
		"map":    {structured(map[string]any{"a": nil}), `{"a":null}`, `{"a":null}`, `{"a":null}`},
		"raw":    {structured(json.RawMessage("{\n \"a\" : 1 }")), `{"a":1}`, `{"a":1}`, `{"a":1}`},
	} {
		for _, version := range server.Versions() {
			for _, noText := range []bool{false, true} {
				t.Run(name+"/"+version, func(t *testing.T) {
					inBubbleWith(t, nil, peerOptions{Version: version}, func(t *testing.T, f *fixture, p *peer) {
						tt.add(f.Server, &server.ToolOptions{NoText: noText})
						p.Call(1, "structured", nil)
						m := p.Answer(1)
						var r struct {
							Content           []json.RawMessage `json:"content"`
							StructuredContent json.RawMessage   `json:"structuredContent"`
						}
						require.NoError(t, json.Unmarshal(m.Result, &r), m.Raw)
						require.NotNil(t, r.Content, "never null")
						if !noText {
							require.JSONEq(t, tt.text, m.Text())
						} else if version >= server.Version20250618 {
							require.Empty(t, r.Content)
						}
						want := tt.object
						switch version {
						case server.Version20241105, server.Version20250326:
							want = ""
						case server.Version20260728:
							want = tt.newer
						}
						if want == "" {
							require.Nil(t, r.StructuredContent)
							return
						}
						require.JSONEq(t, want, string(r.StructuredContent))
					})
				})
			}
		}
	}
}

func structured[T any](v T) func(*server.Server, ...*server.ToolOptions) {
	return func(s *server.Server, o ...*server.ToolOptions) {
		server.MustAddTool(s, &mcp.Tool{Name: "structured"}, func(context.Context, *servercontext.Request, struct{}) (T, error) { return v, nil }, o...)
	}
}

// What typed handlers may return, and nothing at all.
func TestContent_Shapes(t *testing.T) {
	type text string
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		add := func(name string, register func(t *mcp.Tool) error) {
			require.NoError(t, register(&mcp.Tool{Name: name}))
		}
		add("string", func(m *mcp.Tool) error { return server.AddTool(f.Server, m, always("a")) })
		add("text", func(m *mcp.Tool) error { return server.AddTool(f.Server, m, always(text("a"))) })
		add("contents", func(m *mcp.Tool) error {
			return server.AddTool(f.Server, m, always([]mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.TextContent{Text: "b"}}))
		})
		add("no_contents", func(m *mcp.Tool) error { return server.AddTool(f.Server, m, always[[]mcp.Content](nil)) })
		add("no_content", func(m *mcp.Tool) error { return server.AddTool(f.Server, m, always[mcp.Content](nil)) })
		add("nil_content", func(m *mcp.Tool) error { return server.AddTool(f.Server, m, always[*mcp.ImageContent](nil)) })
		add("no_result", func(m *mcp.Tool) error { return server.AddTool(f.Server, m, always[*mcp.CallToolResult](nil)) })
		add("result", func(m *mcp.Tool) error {
			return server.AddTool(f.Server, m, always(&mcp.CallToolResult{IsError: true, Meta: mcp.Meta{"com.example/a": 1}, Content: []mcp.Content{&mcp.TextContent{Text: "a"}}}))
		})
		for name, n := range map[string]int{"string": 1, "text": 1, "contents": 2, "no_contents": 0, "no_content": 0, "nil_content": 0, "no_result": 0, "result": 1} {
			p.Call(name, name, nil)
			r := p.Result(name)
			require.Len(t, r["content"], n, name)
			require.NotContains(t, r, "structuredContent")
			if n > 0 {
				require.Equal(t, "a", p.Answer(name).Text())
			}
			require.Equal(t, name == "result", r["isError"] == true)
			if name == "result" {
				require.EqualValues(t, 1, r["_meta"].(M)["com.example/a"])
			}
		}
	})
}

func always[T any](v T) server.ToolHandler[struct{}, T] {
	return func(context.Context, *servercontext.Request, struct{}) (T, error) { return v, nil }
}
