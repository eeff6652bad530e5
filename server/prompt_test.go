package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPromptWithMapOfArguments(t *testing.T) {
	eachRevision(t, func() *server.Server {
		s := plain(t, nil)
		server.MustAddPrompt(s, &mcp.Prompt{
			Name: "greet", Title: "Greet", Description: "says hello",
			Arguments: []*mcp.PromptArgument{{Name: "who", Title: "Who", Required: true}, {Name: "how"}},
			Icons:     []mcp.Icon{{Source: "https://example.com/i.png", Sizes: []string{"48x48", "any"}}},
			Meta:      mcp.Meta{"com.example/a": 1},
		}, func(_ context.Context, _ *servercontext.Request, in map[string]string) (string, error) {
			return "hello " + in["who"] + in["how"], nil
		})
		return s
	}, func(t *testing.T, p *peer) {
		listed := at(t, p.Get("prompts/list", nil), "prompts", 0).(M)
		assert.Equal(t, "greet", listed["name"])
		assert.Equal(t, "says hello", listed["description"])
		assert.Equal(t, true, at(t, listed, "arguments", 0, "required"))
		assert.Equal(t, p.atLeast("2025-06-18"), listed["title"] != nil, "titles came with 2025-06-18")
		assert.Equal(t, p.atLeast("2025-06-18"), at(t, listed, "arguments", 0, "title") != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), listed["_meta"] != nil, "_meta of items came with 2025-06-18")
		assert.Equal(t, p.atLeast("2025-11-25"), listed["icons"] != nil, "icons came with 2025-11-25")

		got := p.Get("prompts/get", M{"name": "greet", "arguments": M{"who": "ann", "how": "!"}})
		assert.Equal(t, "user", at(t, got, "messages", 0, "role"))
		assert.Equal(t, "hello ann!", at(t, got, "messages", 0, "content", "text"))
		assert.Equal(t, p.atLeast("2026-07-28"), got["resultType"] != nil)
		assert.NotContains(t, got, "ttlMs", "prompts/get is not cacheable")

		p.Refused(-32602, "prompts/get", M{"name": "greet", "arguments": M{"how": "!"}})
		p.Refused(-32602, "prompts/get", M{"name": "greet"})
		p.Refused(-32602, "prompts/get", M{"name": "nobody"})
		p.Refused(-32602, "prompts/get", M{"name": 7})
		p.Refused(-32602, "prompts/get", M{})
		p.Refused(-32602, "prompts/get", M{"name": "greet", "arguments": M{"who": 7}})
		p.Refused(-32602, "prompts/get", M{"name": "greet", "arguments": M{"who": nil}})
		p.Refused(-32602, "prompts/get", M{"name": "greet", "arguments": []any{}})
	})
}

type review struct {
	Language string  `json:"language" jsonschema:"title=Language,enum=go,enum=rust" jsonschema_description:"what it is written in"`
	Depth    int     `json:"depth,omitempty" jsonschema:"minimum=1,default=3"`
	Ratio    float64 `json:"ratio,omitempty"`
	Strict   bool    `json:"strict,omitempty"`
	Note     string  `json:"note,omitempty"`
}

func TestPromptWithStructOfArguments(t *testing.T) {
	s := plain(t, nil)
	var in review
	server.MustAddPrompt(s, &mcp.Prompt{Name: "review"}, func(_ context.Context, _ *servercontext.Request, r review) (*mcp.PromptMessage, error) {
		in = r
		return &mcp.PromptMessage{Role: "assistant", Content: &mcp.TextContent{Text: "ok"}}, nil
	})
	p := newPeer(t, s, peerOptions{})

	arguments := at(t, p.Get("prompts/list", nil), "prompts", 0, "arguments").([]any)
	require.Len(t, arguments, 5, "the fields of the struct, in their order")
	assert.Equal(t, M{"name": "language", "title": "Language", "description": "what it is written in", "required": true}, arguments[0])
	assert.Equal(t, M{"name": "depth"}, arguments[1])

	got := p.Get("prompts/get", M{"name": "review", "arguments": M{"language": "go", "ratio": "0.5", "strict": "true", "note": "12"}})
	assert.Equal(t, review{Language: "go", Depth: 3, Ratio: 0.5, Strict: true, Note: "12"}, in, "text becomes what the field is, defaults apply")
	assert.Equal(t, "assistant", at(t, got, "messages", 0, "role"))

	p.Get("prompts/get", M{"name": "review", "arguments": M{"language": "go", "unheard_of": "x"}})
	for name, arguments := range map[string]M{
		"required":     {},
		"enumeration":  {"language": "perl"},
		"no number":    {"language": "go", "depth": "three"},
		"no integer":   {"language": "go", "depth": "1.5"},
		"minimum":      {"language": "go", "depth": "0"},
		"no boolean":   {"language": "go", "strict": "yes"},
		"JSON in text": {"language": "go", "depth": "1,\"note\":2"},
	} {
		t.Run(name, func(t *testing.T) { p.Refused(-32602, "prompts/get", M{"name": "review", "arguments": arguments}) })
	}
}

func TestPromptMessagesHoldEveryKindOfContent(t *testing.T) {
	eachRevision(t, func() *server.Server {
		s := plain(t, nil)
		server.MustAddPrompt(s, &mcp.Prompt{Name: "all"}, func(context.Context, *servercontext.Request, map[string]string) ([]*mcp.PromptMessage, error) {
			var messages []*mcp.PromptMessage
			for _, c := range []mcp.Content{
				&mcp.TextContent{Text: "", Annotations: &mcp.Annotations{Priority: 0.5, LastModified: "2025-01-12T15:00:58Z"}},
				&mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"},
				&mcp.AudioContent{Data: []byte{2}, MIMEType: "audio/wav"},
				&mcp.ResourceLink{URI: "test://a", Name: "a"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://b"}},
			} {
				messages = append(messages, &mcp.PromptMessage{Content: c})
			}
			return messages, nil
		})
		return s
	}, func(t *testing.T, p *peer) {
		messages := at(t, p.Get("prompts/get", M{"name": "all"}), "messages").([]any)
		kind := func(i int) any { return at(t, messages, i, "content", "type") }
		assert.Equal(t, "", at(t, messages, 0, "content", "text"), "empty text is text")
		assert.Equal(t, 0.5, at(t, messages, 0, "content", "annotations", "priority"))
		assert.Equal(t, p.atLeast("2025-06-18"), at(t, messages, 0, "content", "annotations", "lastModified") != nil)
		assert.Equal(t, "image", kind(1))
		assert.Equal(t, map[bool]any{true: "audio", false: "text"}[p.atLeast("2025-03-26")], kind(2))
		assert.Equal(t, map[bool]any{true: "resource_link", false: "text"}[p.atLeast("2025-06-18")], kind(3))
		assert.Equal(t, "resource", kind(4))
		assert.Equal(t, "", at(t, messages, 4, "content", "resource", "text"), "an empty embedded resource has text")
	})
}

func TestPromptWithoutMessagesHasAnEmptyArray(t *testing.T) {
	s := plain(t, nil)
	s.MustAddPrompt(&mcp.Prompt{Name: "none"}, func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
		return nil, nil
	})
	assert.Equal(t, []any{}, newPeer(t, s, peerOptions{}).Get("prompts/get", M{"name": "none"})["messages"])
}

func TestPromptFailures(t *testing.T) {
	s := plain(t, nil)
	broken := map[string]func() (*mcp.GetPromptResult, error){
		"error": func() (*mcp.GetPromptResult, error) { return nil, errors.New("no") },
		"panic": func() (*mcp.GetPromptResult, error) { panic("no") },
		"role":  func() (*mcp.GetPromptResult, error) { return message1("system", &mcp.TextContent{}), nil },
		"nil":   func() (*mcp.GetPromptResult, error) { return message1("user", nil), nil },
		"no bytes": func() (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{nil}}, nil
		},
	}
	for name, f := range broken {
		s.MustAddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
			return f()
		})
	}
	p := newPeer(t, s, peerOptions{})
	for name := range broken {
		t.Run(name, func(t *testing.T) { p.Refused(-32603, "prompts/get", M{"name": name}) })
	}
}

func TestMetaThatCannotBeEncodedIsLeftOut(t *testing.T) {
	eachRevision(t, func() *server.Server {
		s := plain(t, nil)
		s.MustAddPrompt(&mcp.Prompt{Name: "a"}, func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "d", Meta: mcp.Meta{"a": func() {}}}, nil
		})
		return s
	}, func(t *testing.T, p *peer) {
		got := p.Get("prompts/get", M{"name": "a"})
		assert.Equal(t, "d", got["description"])
		if p.atLeast("2026-07-28") {
			assert.Len(t, got["_meta"], 1, "the server's own")
		} else {
			assert.NotContains(t, got, "_meta")
		}
	})
}

func message1(role mcp.Role, c mcp.Content) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: role, Content: c}}}
}

func TestPromptRegistrationErrors(t *testing.T) {
	s := plain(t, nil)
	ok := func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
		return nil, nil
	}
	two := func(names ...string) []*mcp.PromptArgument {
		var all []*mcp.PromptArgument
		for _, n := range names {
			all = append(all, &mcp.PromptArgument{Name: n})
		}
		return all
	}
	for name, err := range map[string]error{
		"nil prompt":     s.AddPrompt(nil, ok),
		"nil handler":    s.AddPrompt(&mcp.Prompt{Name: "a"}, nil),
		"no name":        s.AddPrompt(&mcp.Prompt{}, ok),
		"unnamed":        s.AddPrompt(&mcp.Prompt{Name: "a", Arguments: two("")}, ok),
		"nil argument":   s.AddPrompt(&mcp.Prompt{Name: "a", Arguments: []*mcp.PromptArgument{nil}}, ok),
		"same name":      s.AddPrompt(&mcp.Prompt{Name: "a", Arguments: two("x", "x")}, ok),
		"icon":           s.AddPrompt(&mcp.Prompt{Name: "a", Icons: []mcp.Icon{{Source: "javascript:1"}}}, ok),
		"reserved _meta": s.AddPrompt(&mcp.Prompt{Name: "a", Meta: mcp.Meta{"io.modelcontextprotocol/x": 1}}, ok),
		"slice": server.AddPrompt(s, &mcp.Prompt{Name: "a"}, func(context.Context, *servercontext.Request, []string) (string, error) {
			return "", nil
		}),
		"field that is no text": server.AddPrompt(s, &mcp.Prompt{Name: "a"}, func(context.Context, *servercontext.Request, struct{ A []string }) (string, error) {
			return "", nil
		}),
	} {
		var r *server.RegistrationError
		assert.ErrorAs(t, err, &r, name)
	}
	assert.Panics(t, func() { s.MustAddPrompt(nil, nil) })
	newPeer(t, s, peerOptions{}).Refused(-32601, "prompts/list", nil)
}

func TestPromptsAreReplacedAndRemoved(t *testing.T) {
	s := plain(t, nil)
	server.MustAddPrompt(s, &mcp.Prompt{Name: "a"}, promptText("old"))
	server.MustAddPrompt(s, &mcp.Prompt{Name: "a"}, promptText("new"))
	p := newPeer(t, s, peerOptions{})
	assert.Equal(t, "new", at(t, p.Get("prompts/get", M{"name": "a"}), "messages", 0, "content", "text"))
	s.RemovePrompts("a", "unknown")
	p.Refused(-32602, "prompts/get", M{"name": "a"})
	assert.Equal(t, []any{}, p.Get("prompts/list", nil)["prompts"], "the capability stays: a client that saw it may still list")
}
