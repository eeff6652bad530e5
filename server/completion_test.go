package server_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

// echoCompletion suggests what it was asked.
func echoCompletion(_ context.Context, _ *servercontext.Request, in server.CompleteIn) (*mcp.CompletionResultDetails, error) {
	return &mcp.CompletionResultDetails{Values: []string{fmt.Sprintf("%s|%s|%s|%s|%v", in.Prompt, in.Template, in.Argument, in.Value, in.Arguments)}}, nil
}

func completing(t *testing.T) *server.Server {
	s := plain(t, nil)
	server.MustAddPrompt(s, &mcp.Prompt{Name: "p", Arguments: []*mcp.PromptArgument{{Name: "a"}, {Name: "b"}, {Name: "c"}}}, promptText(""))
	addTemplate(s, "test://{id}/{path}")
	server.MustAddResource(s, &mcp.Resource{URI: "test://r", Name: "r"}, readText(""))
	s.MustSetPromptCompletion("p", "a", echoCompletion)
	s.MustSetPromptCompletion("p", "b", server.CompleteFrom("Go", "golang", "rust"))
	s.MustSetTemplateCompletion("test://{id}/{path}", "id", echoCompletion)
	return s
}

func promptRef(name string) M  { return M{"type": "ref/prompt", "name": name} }
func resourceRef(uri string) M { return M{"type": "ref/resource", "uri": uri} }
func argument(name, value string) M {
	return M{"name": name, "value": value}
}

func TestCompletionByArgument(t *testing.T) {
	eachRevision(t, func() *server.Server { return completing(t) }, func(t *testing.T, p *peer) {
		complete := func(ref, argument, context M) M {
			params := M{"ref": ref, "argument": argument}
			if context != nil {
				params["context"] = context
			}
			return p.Get("completion/complete", params)["completion"].(M)
		}
		settled := "map[]"
		if p.atLeast("2025-06-18") {
			settled = "map[x:y]"
		}
		context := M{"arguments": M{"x": "y"}}
		assert.Equal(t, []any{"p||a|v|" + settled}, complete(promptRef("p"), argument("a", "v"), context)["values"])
		assert.Equal(t, []any{"|test://{id}/{path}|id|v|map[]"}, complete(resourceRef("test://{id}/{path}"), argument("id", "v"), nil)["values"])
		assert.Equal(t, []any{"|test://{id}/{path}|id||map[]"}, complete(resourceRef("test://1/2"), argument("id", ""), nil)["values"], "a URI that fits the template")
		assert.Equal(t, M{"values": []any{"Go", "golang"}, "total": 2.0, "hasMore": false}, complete(promptRef("p"), argument("b", "go"), nil))
		assert.Equal(t, M{"values": []any{}, "total": 0.0, "hasMore": false}, complete(promptRef("p"), argument("c", ""), nil), "an argument without suggestions")
		assert.Equal(t, M{"values": []any{}, "total": 0.0, "hasMore": false}, complete(resourceRef("test://r"), argument("x", ""), nil))

		for name, params := range map[string]M{
			"unknown prompt":   {"ref": promptRef("q"), "argument": argument("a", "")},
			"unknown argument": {"ref": promptRef("p"), "argument": argument("z", "")},
			"unknown resource": {"ref": resourceRef("nothing://"), "argument": argument("id", "")},
			"unknown variable": {"ref": resourceRef("test://{id}/{path}"), "argument": argument("z", "")},
			"unknown kind":     {"ref": M{"type": "ref/tool", "name": "p"}, "argument": argument("a", "")},
			"no ref":           {"argument": argument("a", "")},
			"ref no object":    {"ref": "p", "argument": argument("a", "")},
			"empty name":       {"ref": promptRef(""), "argument": argument("a", "")},
			"empty URI":        {"ref": resourceRef(""), "argument": argument("a", "")},
			"no argument":      {"ref": promptRef("p")},
			"no name":          {"ref": promptRef("p"), "argument": M{"value": ""}},
			"no value":         {"ref": promptRef("p"), "argument": M{"name": "a"}},
			"value no string":  {"ref": promptRef("p"), "argument": M{"name": "a", "value": 1}},
		} {
			t.Run(name, func(t *testing.T) { p.Refused(-32602, "completion/complete", params) })
		}
	})
}

func TestCompletionCountsValues(t *testing.T) {
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		given mcp.CompletionResultDetails
		n     int
		total any
		more  bool
	}{
		"more than fit":             {mcp.CompletionResultDetails{Values: many}, 100, 250.0, true},
		"as many as fit":            {mcp.CompletionResultDetails{Values: many[:100]}, 100, 100.0, false},
		"total said":                {mcp.CompletionResultDetails{Values: many[:2], Total: 7, HasMore: true}, 2, 7.0, true},
		"more, nobody knows how":    {mcp.CompletionResultDetails{Values: many[:2], HasMore: true}, 2, nil, true},
		"more than fit, total said": {mcp.CompletionResultDetails{Values: many, Total: 1000}, 100, 1000.0, true},
		"nothing":                   {mcp.CompletionResultDetails{}, 0, 0.0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := completing(t)
			s.MustSetPromptCompletion("p", "c", func(context.Context, *servercontext.Request, server.CompleteIn) (*mcp.CompletionResultDetails, error) {
				return &c.given, nil
			})
			got := newPeer(t, s, peerOptions{}).Get("completion/complete", M{"ref": promptRef("p"), "argument": argument("c", "")})["completion"].(M)
			assert.Len(t, got["values"], c.n)
			assert.Equal(t, c.total, got["total"])
			assert.Equal(t, c.more, got["hasMore"])
		})
	}
}

func TestCompletionForEverything(t *testing.T) {
	s := completing(t)
	s.SetCompletion(func(ctx context.Context, req *servercontext.Request, in server.CompleteIn) (*mcp.CompletionResultDetails, error) {
		if in.Value == "fail" {
			return nil, errors.New("no")
		}
		return echoCompletion(ctx, req, in)
	})
	p := newPeer(t, s, peerOptions{})
	values := func(ref, argument M) any {
		return at(t, p.Get("completion/complete", M{"ref": ref, "argument": argument}), "completion", "values")
	}
	assert.Equal(t, []any{"p||c|v|map[]"}, values(promptRef("p"), argument("c", "v")))
	assert.Equal(t, []any{"|test://{id}/{path}|path|v|map[]"}, values(resourceRef("test://1/2"), argument("path", "v")))
	assert.Equal(t, []any{"|test://r|x|v|map[]"}, values(resourceRef("test://r"), argument("x", "v")))
	assert.Equal(t, []any{"rust"}, values(promptRef("p"), argument("b", "r")), "an argument's own handler comes first")
	p.Refused(-32603, "completion/complete", M{"ref": promptRef("p"), "argument": argument("c", "fail")})

	s.SetCompletion(nil)
	s.MustSetPromptCompletion("p", "b", nil)
	assert.Equal(t, []any{}, values(promptRef("p"), argument("b", "r")))
	assert.Error(t, s.SetPromptCompletion("", "a", echoCompletion))
	assert.Error(t, s.SetTemplateCompletion("a", "", echoCompletion))
}
