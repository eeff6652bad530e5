package conformance_test

import (
	"encoding/base64"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The revisions, oldest first.
var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", newestHandshake, newest}

// The official suite speaks HTTP only. Here its scenarios' expectations hold over stdio, in each
// revision, and every line that the server writes fits the JSON schema of that revision.
func TestScenariosOverStdio(t *testing.T) {
	everything(t)
	for _, version := range revisions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := startLines(t, version)
			for _, s := range scenarios { // the first begins the session
				if version >= s.since && (s.until == "" || version <= s.until) {
					t.Run(s.name, func(t *testing.T) {
						c.serve(t)
						s.run(t, c)
					})
				}
			}
		})
	}
}

// scenario is what a client does, and what it may expect. The names are the suite's where it has
// the same.
type scenario struct {
	name         string
	since, until string // the first and the last revision; "" for no bound
	run          func(*testing.T, *lineClient)
}

const (
	sinceAudio       = "2025-03-26"
	sinceStructure   = "2025-06-18" // structured content, forms, titles
	handshakeAtLast  = newestHandshake
	statelessAtFirst = newest
)

var scenarios = []scenario{
	{"server-initialize", "", handshakeAtLast, initializes},
	{"server-discover", statelessAtFirst, "", discovers},
	{"ping", "", handshakeAtLast, func(t *testing.T, c *lineClient) { assert.Empty(t, c.result("ping", nil)) }},
	{"logging", "", handshakeAtLast, logs},
	{"logging-per-request", statelessAtFirst, "", logsOnRequest},
	{"lists", "", "", lists},
	{"tools", "", "", callsTools},
	{"tools-content", "", "", returnsContent},
	{"tools-structured", sinceStructure, "", func(t *testing.T, c *lineClient) {
		assert.Contains(t, c.tool("cancel_events", M{})["structuredContent"], "events")
	}},
	{"tools-errors", "", "", reportsToolErrors},
	{"tools-call-with-progress", "", "", progresses},
	{"resources", "", "", readsResources},
	{"resources-subscribe", "", handshakeAtLast, subscribes},
	{"prompts", "", "", getsPrompts},
	{"completion", "", "", completes},
	{"errors", "", "", refuses},
	{"errors-stateless", statelessAtFirst, "", refusesOtherEra},
	{"batches", "2025-03-26", "2025-03-26", takesBatches},
	{"nested", "", handshakeAtLast, asksInTurn},
	{"nested-cancelled", "", handshakeAtLast, retracts},
	{"input-required", statelessAtFirst, "", wantsInput},
	{"subscriptions-listen", statelessAtFirst, "", listens},
	{"list-changed", "", handshakeAtLast, announces},
	{"cancelled", "", "", isSilentWhenCancelled},
}

// initialize opens the session.
func (c *lineClient) initialize() M {
	c.test().Helper()
	result := c.result("initialize", M{"protocolVersion": c.version, "capabilities": c.capabilities, "clientInfo": M{"name": "lines", "version": "1"}})
	c.notify("notifications/initialized", M{})
	return result
}

func initializes(t *testing.T, c *lineClient) {
	c.fails(-32600, "tools/list", nil) // not before the handshake
	result := c.initialize()
	assert.Equal(t, c.version, result["protocolVersion"])
	assert.Equal(t, "heed-everything", result["serverInfo"].(M)["name"])
	assert.Contains(t, result["capabilities"], "tools")
	c.fails(-32600, "initialize", M{"protocolVersion": c.version, "capabilities": M{}, "clientInfo": M{"name": "again", "version": "1"}})
}

func discovers(t *testing.T, c *lineClient) {
	result := c.result("server/discover", nil)
	assert.Contains(t, result["supportedVersions"], newest)
	assert.Equal(t, "heed-everything", result["_meta"].(M)["io.modelcontextprotocol/serverInfo"].(M)["name"])
	for _, feature := range []string{"tools", "prompts", "resources", "completions"} {
		assert.Contains(t, result["capabilities"], feature)
	}
}

func logs(t *testing.T, c *lineClient) {
	assert.Empty(t, c.result("logging/setLevel", M{"level": "debug"}))
	c.tool("test_tool_with_logging", M{})
	for _, m := range c.notifiedN("notifications/message", 3) {
		assert.Equal(t, "info", m.Params["level"])
	}
	c.fails(-32602, "logging/setLevel", M{"level": "loud"})
}

func logsOnRequest(t *testing.T, c *lineClient) {
	c.tool("test_logging_tool", M{})
	assert.Equal(t, "info", c.notified("notifications/message").Params["level"])
	c.forget()
	c.result("tools/call", M{"name": "test_logging_tool", "_meta": M{"io.modelcontextprotocol/logLevel": nil}})
	c.tool("echo", M{"text": "whatever came before has arrived"})
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Empty(t, c.notifications, "the client has not asked for messages")
}

var listings = map[string]string{ // by method, the result's member
	"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
}

// list is what a method lists.
func (c *lineClient) list(method string) (items []M) {
	c.test().Helper()
	for _, item := range c.result(method, nil)[listings[method]].([]any) {
		items = append(items, item.(M))
	}
	require.NotEmpty(c.test(), items, method)
	return items
}

func lists(t *testing.T, c *lineClient) {
	name := regexp.MustCompile(`^[A-Za-z0-9_./-]{1,64}$`)
	for method := range listings {
		for _, item := range c.list(method) {
			assert.NotEmpty(t, item["name"], method)
			if method == "tools/list" {
				assert.Regexp(t, name, item["name"])
				assert.NotEmpty(t, item["description"], item["name"])
				assert.Equal(t, "object", item["inputSchema"].(M)["type"], item["name"])
			}
			if !c.since(sinceStructure) {
				assert.NotContains(t, item, "outputSchema", item["name"])
				assert.NotContains(t, item, "title", item["name"])
			}
		}
		c.fails(-32602, method, M{"cursor": "no cursor of this server"})
	}
}

// content is a tool's first content block of a type, nil if there is none.
func content(result M, kind string) M {
	blocks, _ := result["content"].([]any)
	for _, block := range blocks {
		if block.(M)["type"] == kind {
			return block.(M)
		}
	}
	return nil
}

func returnsContent(t *testing.T, c *lineClient) {
	assert.Equal(t, "This is a simple text response for testing.", content(c.tool("test_simple_text", M{}), "text")["text"])
	assert.Equal(t, "image/png", content(c.tool("test_image_content", M{}), "image")["mimeType"])
	audio := c.tool("test_audio_content", M{})
	if c.since(sinceAudio) {
		assert.Equal(t, "audio/wav", content(audio, "audio")["mimeType"])
	} else {
		assert.NotNil(t, content(audio, "text"), "a note in place of what the revision does not have")
	}
	embedded := content(c.tool("test_embedded_resource", M{}), "resource")
	assert.Equal(t, "test://embedded-resource", embedded["resource"].(M)["uri"])
	mixed := c.tool("test_multiple_content_types", M{})
	for _, kind := range []string{"text", "image", "resource"} {
		assert.NotNil(t, content(mixed, kind), kind)
	}
}

func reportsToolErrors(t *testing.T, c *lineClient) {
	result := c.tool("test_error_handling", M{})
	assert.Equal(t, true, result["isError"])
	assert.Equal(t, "This tool intentionally returns an error for testing", content(result, "text")["text"])
	assert.Equal(t, true, c.tool("echo", M{"text": 7})["isError"], "arguments that do not fit")
	assert.Equal(t, true, c.tool("cancel_timeout", M{"tag": "slow", "ms": 60_000})["isError"])
	assert.Equal(t, true, c.tool("cancel_foreign", M{"tag": "foreign"})["isError"])
	c.fails(-32602, "tools/call", M{"name": "no_such_tool"})
	c.fails(-32602, "tools/call", M{})
	c.fails(-32602, "tools/call", M{"name": "echo", "arguments": "text"})
}

func progresses(t *testing.T, c *lineClient) {
	c.tool("test_tool_with_progress", M{})
	var seen []any
	for _, m := range c.notifiedN("notifications/progress", 3) {
		assert.EqualValues(t, c.last, m.Params["progressToken"])
		seen = append(seen, m.Params["progress"])
	}
	assert.Equal(t, []any{0.0, 50.0, 100.0}, seen)
}

func readsResources(t *testing.T, c *lineClient) {
	first := func(uri string) M { return c.result("resources/read", M{"uri": uri})["contents"].([]any)[0].(M) }
	assert.Equal(t, "This is the content of the static text resource.", first("test://static-text")["text"])
	_, err := base64.StdEncoding.DecodeString(first("test://static-binary")["blob"].(string))
	require.NoError(t, err)
	assert.Contains(t, first("test://template/123/data")["text"], "123")
	for _, resource := range c.list("resources/list") {
		uri := resource["uri"].(string)
		assert.Equal(t, uri, first(uri)["uri"])
	}
	assert.Equal(t, "", first("test://empty-text")["text"])
	missing := -32002
	if c.stateless() {
		missing = -32602
	}
	for _, uri := range []string{"test://nonexistent-resource", "test://with\u0001control"} {
		m := c.fails(missing, "resources/read", M{"uri": uri})
		assert.Equal(t, uri, m.Error.Data.(M)["uri"])
	}
}

func subscribes(t *testing.T, c *lineClient) {
	assert.Empty(t, c.result("resources/subscribe", M{"uri": "test://watched-resource"}))
	assert.Equal(t, "test://watched-resource", c.notified("notifications/resources/updated").Params["uri"])
	assert.Empty(t, c.result("resources/unsubscribe", M{"uri": "test://watched-resource"}))
}

func getsPrompts(t *testing.T, c *lineClient) {
	arguments := M{"arg1": "one", "arg2": "two", "resourceUri": "test://static-text"}
	for _, prompt := range c.list("prompts/list") {
		if prompt["name"] == "cancel_wait_prompt" {
			continue // isSilentWhenCancelled
		}
		params := M{"name": prompt["name"]}
		given := M{}
		declared, _ := prompt["arguments"].([]any)
		for _, a := range declared {
			name := a.(M)["name"].(string)
			require.Contains(t, arguments, name, "an argument of %s", prompt["name"])
			given[name] = arguments[name]
		}
		if len(given) > 0 {
			params["arguments"] = given
		}
		if prompt["name"] == "test_input_required_result_prompt" && !c.since(sinceStructure) {
			continue // forms are younger
		}
		assert.NotEmpty(t, c.result("prompts/get", params)["messages"], prompt["name"])
	}
	c.fails(-32602, "prompts/get", M{"name": "no_such_prompt"})
	c.fails(-32602, "prompts/get", M{"name": "test_prompt_with_arguments", "arguments": M{"arg1": "one"}})
}

func completes(t *testing.T, c *lineClient) {
	for _, ref := range []M{
		{"type": "ref/prompt", "name": "test_prompt_with_arguments"},
		{"type": "ref/prompt", "name": "cancel_wait_prompt"},
		{"type": "ref/resource", "uri": "test://template/{id}/data"},
	} {
		name := map[any]string{"test_prompt_with_arguments": "arg1", "cancel_wait_prompt": "tag", nil: "id"}[ref["name"]]
		result := c.result("completion/complete", M{"ref": ref, "argument": M{"name": name, "value": "test"}})
		assert.Contains(t, result["completion"], "values")
	}
	c.fails(-32602, "completion/complete", M{"ref": M{"type": "ref/none"}, "argument": M{"name": "a", "value": "b"}})
}
