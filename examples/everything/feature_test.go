package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func decodeResult[T any](t *testing.T, e *exchange) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(e.result(t), &v))
	return v
}

// waits are the places besides tools where a request waits as cancel_wait does.
var waits = []struct {
	name      string
	handshake bool // not in the stateless era
	method    string
	params    func(tag string) map[string]any
	result    string // what it answers in the end, besides what every result has
}{
	{"resource", false, "resources/read", func(tag string) map[string]any {
		return map[string]any{"uri": "cancel://wait/" + tag}
	}, `"done"`},
	{"prompt", false, "prompts/get", func(tag string) map[string]any {
		return map[string]any{"name": "cancel_wait_prompt", "arguments": map[string]any{"tag": tag}}
	}, `"done"`},
	{"completion", false, "completion/complete", func(tag string) map[string]any {
		return map[string]any{
			"ref":      map[string]any{"type": "ref/prompt", "name": "cancel_wait_prompt"},
			"argument": map[string]any{"name": "tag", "value": "wait:" + tag},
		}
	}, `"done"`},
	{"subscribe", true, "resources/subscribe", func(tag string) map[string]any {
		return map[string]any{"uri": "cancel://subscribe/" + tag}
	}, `{}`},
	{"method", false, "heed/wait", func(tag string) map[string]any { return map[string]any{"tag": tag} }, `"done"`},
}

// Every kind of request can be cancelled, and does not hear of it.
func TestOtherRequestsWait(t *testing.T) {
	for _, era := range eras {
		for _, w := range waits {
			if w.handshake && era.stateless {
				continue
			}
			t.Run(era.name+"/"+w.name, func(t *testing.T) {
				inBubble(t, era.stateless, everyCapability, func(t *testing.T, c *client) {
					e := c.request(w.method, w.params("elapses"))
					assert.Equal(t, []event{started}, c.events("elapses"))
					time.Sleep(59 * time.Second)
					require.False(t, e.answered())
					time.Sleep(2 * time.Second)
					assert.Contains(t, string(e.result(t)), w.result)
					assert.Equal(t, []event{started, elapsed}, c.events("elapses"))

					e = c.request(w.method, w.params("stops"))
					time.Sleep(time.Second)
					c.cancel(e, reason)
					e.silent(t)
					assert.Equal(t, []event{started, cancelledEvent("observed", cancellation.Peer)}, c.events("stops"))

					e = c.request(w.method, w.params("times-out"))
					require.True(t, c.session.Cancel(idText(e), cancellation.Timeout, reason))
					time.Sleep(time.Second)
					failure := e.reply(t).Error
					require.NotNil(t, failure)
					assert.Equal(t, -32603, failure.Code)
					assert.Contains(t, string(failure.Data), `"timeout"`)
				})
			})
		}
	}
}

// In the stateless era a subscription is a request that stays open; the hook
// decides before it is acknowledged.
func TestListenWaitsForItsResources(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		listen := func(uri string) *exchange {
			return c.request("subscriptions/listen", map[string]any{
				"notifications": map[string]any{"resourceSubscriptions": []string{uri}},
			})
		}
		e := listen("cancel://subscribe/a")
		assert.Equal(t, []event{started}, c.events("a"))
		assert.Empty(t, e.sent)
		c.cancel(e, reason)
		e.silent(t)
		assert.Equal(t, []event{started, cancelledEvent("observed", cancellation.Peer)}, c.events("a"))

		e = listen("test://watched-resource")
		require.Len(t, e.messages(t, "notifications/subscriptions/acknowledged"), 1)
		assert.Equal(t, 0, statsOf(t, c).InFlight, "subscriptions are not counted")
		c.fixture.server.ResourceUpdated("test://watched-resource")
		time.Sleep(time.Second)
		assert.Len(t, e.messages(t, "notifications/resources/updated"), 1)
	})
}

func TestSubscribe(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		uri := map[string]any{"uri": "test://watched-resource"}
		assert.JSONEq(t, `{}`, string(c.request("resources/subscribe", maps.Clone(uri)).result(t)))
		assert.JSONEq(t, `{}`, string(c.request("resources/unsubscribe", maps.Clone(uri)).result(t)))
		for _, unknown := range []string{"test://unknown", "cancel://subscribe/", "cancel://subscribe/%zz", "x"} {
			assert.NotNil(t, c.request("resources/subscribe", map[string]any{"uri": unknown}).reply(t).Error, unknown)
		}
		e := c.request("resources/subscribe", map[string]any{"uri": "cancel://subscribe/a%20b"})
		assert.Equal(t, []event{started}, c.events("a b"))
		require.False(t, e.answered())
	})
}

// The watched resource changes every three seconds until the server ends.
func TestWatchedResourceIsUpdated(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		e := c.request("subscriptions/listen", map[string]any{
			"notifications": map[string]any{"resourceSubscriptions": []string{"test://watched-resource"}},
		})
		ctx, stop := context.WithCancel(t.Context())
		go c.fixture.update(ctx)
		time.Sleep(6*time.Second + time.Millisecond)
		assert.Len(t, e.messages(t, "notifications/resources/updated"), 2)
		stop()
		time.Sleep(time.Minute)
		assert.Len(t, e.messages(t, "notifications/resources/updated"), 2)
	})
}

type listed struct {
	Prompts []struct {
		Name, Description string
		Arguments         []struct {
			Name     string
			Required bool
		}
	}
	Resources         []struct{ URI, Name, MIMEType string }
	ResourceTemplates []struct{ URITemplate, Name, MIMEType string }
	TTLMS             *int   `json:"ttlMs"`
	CacheScope        string `json:"cacheScope"`
}

func TestPromptNames(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		arguments := map[string][]string{}
		for _, p := range decodeResult[listed](t, c.request("prompts/list", nil)).Prompts {
			assert.NotEmpty(t, p.Description, p.Name)
			arguments[p.Name] = nil
			for _, a := range p.Arguments {
				assert.True(t, a.Required, a.Name)
				arguments[p.Name] = append(arguments[p.Name], a.Name)
			}
		}
		assert.Equal(t, map[string][]string{
			"test_simple_prompt":                 nil,
			"test_prompt_with_arguments":         {"arg1", "arg2"},
			"test_prompt_with_embedded_resource": {"resourceUri"},
			"test_prompt_with_image":             nil,
			"test_input_required_result_prompt":  nil,
			"cancel_wait_prompt":                 {"tag"},
		}, arguments)
	})
}

func (c *client) prompt(name string, arguments, more map[string]any) *exchange {
	params := map[string]any{"name": name}
	if arguments != nil {
		params["arguments"] = arguments
	}
	maps.Copy(params, more)
	return c.request("prompts/get", params)
}

type gotPrompt struct {
	Messages []struct {
		Role    string
		Content map[string]any
	}
}

func TestPrompts(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		got := decodeResult[gotPrompt](t, c.prompt("test_simple_prompt", nil, nil))
		require.Len(t, got.Messages, 1)
		assert.Equal(t, "user", got.Messages[0].Role)
		assert.Equal(t, map[string]any{"type": "text", "text": "This is a simple prompt for testing."}, got.Messages[0].Content)

		got = decodeResult[gotPrompt](t, c.prompt("test_prompt_with_arguments", map[string]any{"arg1": "a", "arg2": "b"}, nil))
		require.Len(t, got.Messages, 1)
		assert.Equal(t, "Prompt with arguments: arg1='a', arg2='b'", got.Messages[0].Content["text"])

		got = decodeResult[gotPrompt](t, c.prompt("test_prompt_with_embedded_resource", map[string]any{"resourceUri": "test://x"}, nil))
		require.Len(t, got.Messages, 2)
		assert.Equal(t, map[string]any{"type": "resource", "resource": map[string]any{
			"uri": "test://x", "mimeType": "text/plain", "text": "Embedded resource content for testing.",
		}}, got.Messages[0].Content)
		assert.Equal(t, "text", got.Messages[1].Content["type"])

		got = decodeResult[gotPrompt](t, c.prompt("test_prompt_with_image", nil, nil))
		require.Len(t, got.Messages, 2)
		checkPicture(t, got.Messages[0].Content)
		assert.Equal(t, "text", got.Messages[1].Content["type"])

		for _, missing := range []string{"test_prompt_with_arguments", "cancel_wait_prompt", "unknown"} {
			failure := c.prompt(missing, nil, nil).reply(t).Error
			require.NotNil(t, failure, missing)
			assert.Equal(t, -32602, failure.Code)
		}
	})
}

func TestPromptAsksForInput(t *testing.T) {
	const name = "test_input_required_result_prompt"
	inStatelessEra(t, func(t *testing.T, c *client) {
		asked := c.prompt(name, nil, nil).input(t)
		require.Equal(t, []string{"user_context"}, asked.keys())
		assert.Equal(t, "elicitation/create", asked.InputRequests["user_context"].Method)
		answers := map[string]any{"inputResponses": map[string]any{"user_context": accept(map[string]any{"context": "tests"})}}
		got := decodeResult[gotPrompt](t, c.prompt(name, nil, answers))
		require.Len(t, got.Messages, 1)
		assert.Equal(t, "Context: tests", got.Messages[0].Content["text"])
	})
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		e := c.prompt(name, nil, nil)
		answerNext(t, c, e, "elicitation/create", `{"action":"accept","content":{"context":"tests"}}`)
		assert.Contains(t, string(e.result(t)), "Context: tests")
	})
}

func TestResourceNames(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		var resources, templates []string
		for _, r := range decodeResult[listed](t, c.request("resources/list", nil)).Resources {
			assert.NotEmpty(t, r.Name)
			resources = append(resources, r.URI+" "+r.MIMEType)
		}
		for _, r := range decodeResult[listed](t, c.request("resources/templates/list", nil)).ResourceTemplates {
			assert.NotEmpty(t, r.Name)
			templates = append(templates, r.URITemplate+" "+r.MIMEType)
		}
		assert.Equal(t, []string{
			"test://static-text text/plain", "test://static-binary image/png",
			"test://watched-resource text/plain", "test://empty-text text/plain",
			"skill://read-an-answer/SKILL.md text/markdown", "skill://stop-a-batch/SKILL.md text/markdown",
		}, resources)
		assert.Equal(t, []string{
			"test://template/{id}/data application/json", "cancel://wait/{tag} text/plain", "cancel://subscribe/{tag} text/plain",
			"skill://{+path} ",
		}, templates)
	})
}

func (c *client) read(uri string) *exchange {
	return c.request("resources/read", map[string]any{"uri": uri})
}

func TestResources(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		contents := func(uri string) map[string]any {
			t.Helper()
			got := decodeResult[struct{ Contents []map[string]any }](t, c.read(uri))
			require.Len(t, got.Contents, 1)
			return got.Contents[0]
		}
		assert.Equal(t, map[string]any{
			"uri": "test://static-text", "mimeType": "text/plain", "text": "This is the content of the static text resource.",
		}, contents("test://static-text"))

		binary := contents("test://static-binary")
		assert.Equal(t, "test://static-binary", binary["uri"])
		binary["type"], binary["data"] = "image", binary["blob"]
		checkPicture(t, binary)

		assert.Equal(t, map[string]any{"uri": "test://empty-text", "mimeType": "text/plain", "text": ""}, contents("test://empty-text"))
		assert.NotEmpty(t, contents("test://watched-resource")["text"])

		data := contents("test://template/123/data")
		assert.Equal(t, "test://template/123/data", data["uri"])
		assert.Equal(t, "application/json", data["mimeType"])
		assert.JSONEq(t, `{"id":"123","templateTest":true,"data":"Data for ID: 123"}`, data["text"].(string))
		assert.JSONEq(t, `{"id":"a\"b","templateTest":true,"data":"Data for ID: a\"b"}`, contents("test://template/a%22b/data")["text"].(string))

		const unknown = "test://nonexistent-resource-for-conformance-testing"
		failure := c.read(unknown).reply(t).Error
		require.NotNil(t, failure)
		assert.JSONEq(t, `{"uri":"`+unknown+`"}`, string(failure.Data))
		if c.stateless {
			assert.Equal(t, -32602, failure.Code)
		} else {
			assert.Equal(t, -32002, failure.Code)
		}
	})
}

// What clients may keep says for how long.
func TestResultsThatMayBeCached(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"} {
			params := map[string]any{}
			if method == "resources/read" {
				params["uri"] = "test://static-text"
			}
			got := decodeResult[listed](t, c.request(method, params))
			require.NotNil(t, got.TTLMS, method)
			assert.GreaterOrEqual(t, *got.TTLMS, 0)
			assert.Contains(t, []string{"public", "private"}, got.CacheScope, method)
		}
	})
}

func TestCompletion(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		complete := func(prompt, argument, value string) []string {
			t.Helper()
			got := decodeResult[struct {
				Completion struct{ Values []string }
			}](t, c.request("completion/complete", map[string]any{
				"ref":      map[string]any{"type": "ref/prompt", "name": prompt},
				"argument": map[string]any{"name": argument, "value": value},
			}))
			require.NotNil(t, got.Completion.Values)
			return got.Completion.Values
		}
		assert.Equal(t, []string{"paris", "park", "party"}, complete("test_prompt_with_arguments", "arg1", "par"))
		assert.Equal(t, []string{"park"}, complete("test_prompt_with_arguments", "arg1", "park"))
		assert.Empty(t, complete("test_prompt_with_arguments", "arg1", "test"))
		assert.Empty(t, complete("cancel_wait_prompt", "tag", "x"))
	})
}

// Each call of a trigger is a change: things come and go.
func TestChangesAreTold(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		listen := func(kind string) *exchange {
			return c.request("subscriptions/listen", map[string]any{"notifications": map[string]any{kind: true}})
		}
		tools, prompts := listen("toolsListChanged"), listen("promptsListChanged")
		for n := 1; n <= 3; n++ {
			assert.NotEmpty(t, c.call("test_trigger_tool_change", nil).text(t))
			time.Sleep(time.Second)
			assert.Len(t, tools.messages(t, "notifications/tools/list_changed"), n)
			assert.Equal(t, n%2 == 1, slices.ContainsFunc(listTools(t, c), func(l listedTool) bool { return l.Name == transient }))
		}
		assert.Empty(t, prompts.messages(t, "notifications/tools/list_changed"))
		assert.Equal(t, "still there", c.call(transient, nil).text(t))
		for n := 1; n <= 3; n++ {
			assert.NotEmpty(t, c.call("test_trigger_prompt_change", nil).text(t))
			time.Sleep(time.Second)
			assert.Len(t, prompts.messages(t, "notifications/prompts/list_changed"), n)
		}
		assert.Empty(t, tools.messages(t, "notifications/prompts/list_changed"))
		assert.Contains(t, string(c.prompt(transient, nil, nil).result(t)), "still there")
	})
}

// Where the stream cannot be closed, the tool only takes its time.
func TestReconnectionWithoutStream(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("test_reconnection", nil)
		time.Sleep(99 * time.Millisecond)
		require.False(t, e.answered())
		time.Sleep(2 * time.Millisecond)
		assert.NotEmpty(t, e.text(t))
	})
}
