package conformance_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// toolArguments are arguments for the tools that need some; nil for those that must be cancelled, which
// isSilentWhenCancelled does.
var toolArguments = map[string]M{
	"cancel_wait": nil, "cancel_error": nil, "cancel_panic": nil, "cancel_hook": nil, "cancel_then_nested": nil,

	"cancel_poll":              {"tag": "all", "steps": 2, "step_ms": 1},
	"cancel_ignore":            {"tag": "all", "ms": 50},
	"cancel_shield":            {"tag": "all", "ms": 1},
	"cancel_foreign":           {"tag": "all"},
	"cancel_timeout":           {"tag": "all", "ms": 1},
	"cancel_nested":            {"tag": "all", "kind": "sampling"},
	"cancel_sequence":          {"tag": "all"},
	"echo":                     {"text": "all", "progress": 2},
	"greet":                    {"name": "all"},
	"slow_compute":             {"seconds": 0, "label": "all"},
	"confirm_delete":           {"filename": "all"},
	"test_sampling":            {"prompt": "all"},
	"test_elicitation":         {"message": "all"},
	"test_x_mcp_header":        {"region": "eu", "level": 1},
	"json_schema_2020_12_tool": {"email": "a@b.c"},
}

// callsTools calls every tool that is listed: what each returns fits the schema.
func callsTools(t *testing.T, c *lineClient) {
	for _, tool := range c.list("tools/list") {
		name := tool["name"].(string)
		arguments, known := toolArguments[name]
		if known && arguments == nil {
			continue
		}
		if required, _ := tool["inputSchema"].(M)["required"].([]any); !known {
			require.Emptyf(t, required, "which arguments for %s?", name)
			arguments = M{}
		}
		params := M{"name": name, "arguments": arguments}
		for range 6 {
			m := c.ask("tools/call", params)
			switch {
			case m.Error != nil:
				// Only as a task, and the client cannot do that.
				assert.Containsf(t, []string{"failing_job", "test_tool_with_task", "protocol_error_job"}, name, "%+v", m.Error)
			case m.Result["resultType"] == "input_required":
				params = c.nextRound(params, m.Result)
				continue
			default:
				assert.NotNil(t, m.Result["content"], name)
			}
			break
		}
	}
}

func refuses(t *testing.T, c *lineClient) {
	c.fails(-32601, "no/such/method", nil)
	c.fails(-32601, "notifications/cancelled", M{"requestId": 1}) // with an id it is none
	for _, line := range []string{`{`, `[]`, `{"jsonrpc":"1.0","id":"wrong","method":"tools/list"}`, `"text"`} {
		answer := make(chan lineMsg, 1)
		key := "null"
		if strings.Contains(line, "wrong") {
			key = `"wrong"`
		}
		c.mu.Lock()
		c.answers[key], c.answers[""] = answer, answer
		c.mu.Unlock()
		c.write(line)
		m := c.await(answer, line)
		require.NotNil(t, m.Error, line)
		assert.Contains(t, []int{-32700, -32600}, m.Error.Code, line)
	}
	assert.Equal(t, "still here", content(c.tool("echo", M{"text": "still here"}), "text")["text"])
}

func refusesOtherEra(t *testing.T, c *lineClient) {
	for _, method := range []string{"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"} {
		c.fails(-32601, method, M{"level": "info", "uri": "test://watched-resource"})
	}
	const prefix = "io.modelcontextprotocol/"
	m := c.fails(-32022, "tools/list", M{"_meta": M{prefix + "protocolVersion": "1900-01-01"}})
	assert.Equal(t, "1900-01-01", m.Error.Data.(M)["requested"])
	c.fails(-32602, "tools/list", M{"_meta": M{prefix + "clientCapabilities": nil}})
	m = c.fails(-32021, "tools/call", M{"name": "test_missing_capability", "_meta": M{prefix + "clientCapabilities": M{"elicitation": M{}}}})
	assert.Equal(t, M{"sampling": M{}}, m.Error.Data.(M)["requiredCapabilities"])
}

func takesBatches(t *testing.T, c *lineClient) {
	c.write(`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b","method":"no/such"}]`)
	assert.Len(t, <-c.batches, 2)
}

// kinds are what a server may ask, and since when.
var kinds = map[string]struct{ method, since string }{
	"sampling":         {"sampling/createMessage", ""},
	"roots":            {"roots/list", ""},
	"ping":             {"ping", ""},
	"elicitation_form": {"elicitation/create", sinceStructure},
	"elicitation_url":  {"elicitation/create", newestHandshake},
}

func asksInTurn(t *testing.T, c *lineClient) {
	for kind, k := range kinds {
		c.forget()
		result := c.tool("cancel_nested", M{"tag": "nested", "kind": kind})
		if c.since(k.since) {
			assert.Nil(t, result["isError"], "%s: %v", kind, result)
			assert.Equal(t, []string{k.method}, c.questions())
		} else {
			assert.Equal(t, true, result["isError"], kind)
			assert.Empty(t, c.questions())
		}
	}
	for tool, since := range map[string]string{"test_elicitation_sep1034_defaults": sinceStructure, "test_elicitation_sep1330_enums": newestHandshake} {
		c.forget()
		isError := c.tool(tool, M{})["isError"]
		assert.Equal(t, c.since(since), isError == nil, tool)
		assert.Equal(t, c.since(since), len(c.questions()) == 1, tool)
	}
}

// retracts cancels a call whose question has no answer yet.
func retracts(t *testing.T, c *lineClient) {
	c.mu.Lock()
	c.ignore = true
	c.mu.Unlock()
	id, _ := c.begin("tools/call", M{"name": "cancel_nested", "arguments": M{"tag": "retracted", "kind": "sampling"}})
	for {
		c.mu.Lock()
		asked, changed := len(c.asked) > 0, c.changed
		c.mu.Unlock()
		if asked {
			break
		}
		<-changed
	}
	c.notify("notifications/cancelled", M{"requestId": id, "reason": "enough"})
	m := c.notified("notifications/cancelled")
	assert.Equal(t, "enough", m.Params["reason"])
	c.silent(id)
}

func wantsInput(t *testing.T, c *lineClient) {
	for _, tool := range c.list("tools/list") {
		name := tool["name"].(string)
		if !strings.HasPrefix(name, "test_input_required_result_") || strings.HasSuffix(name, "_tampered_state") {
			continue
		}
		first := c.ask("tools/call", M{"name": name})
		assert.Equal(t, "input_required", first.Result["resultType"], name)
		assert.NotEmpty(t, c.tool(name, M{})["content"], name)
	}
	// The state must come back as it was given out.
	tampered := c.ask("tools/call", M{"name": "test_input_required_result_tampered_state"})
	again := c.nextRound(M{"name": "test_input_required_result_tampered_state"}, tampered.Result)
	again["requestState"] = again["requestState"].(string) + "-TAMPERED"
	assert.NotNil(t, c.ask("tools/call", again).Error)
	// Only what the client can do is asked for.
	m := c.ask("tools/call", M{"name": "test_input_required_result_capabilities", "_meta": M{"io.modelcontextprotocol/clientCapabilities": M{"sampling": M{}}}})
	for _, wanted := range m.Result["inputRequests"].(M) {
		assert.Equal(t, "sampling/createMessage", wanted.(M)["method"])
	}
}

func listens(t *testing.T, c *lineClient) {
	id, answer := c.begin("subscriptions/listen", M{"notifications": M{
		"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": []string{"test://watched-resource"},
	}})
	c.notified("notifications/subscriptions/acknowledged")
	c.tool("test_trigger_tool_change", M{})
	c.tool("test_trigger_prompt_change", M{})
	for _, method := range []string{"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/updated"} {
		m := c.notified(method)
		assert.EqualValues(t, id, m.Params["_meta"].(M)["io.modelcontextprotocol/subscriptionId"], method)
	}
	c.notify("notifications/cancelled", M{"requestId": id})
	c.tool("echo", M{"text": "what came before has arrived"})
	select {
	case m := <-answer:
		assert.Fail(t, "a cancelled subscription is answered", "%+v", m)
	default:
	}
}

func announces(t *testing.T, c *lineClient) {
	c.tool("test_trigger_tool_change", M{})
	c.notified("notifications/tools/list_changed")
	c.tool("test_trigger_prompt_change", M{})
	c.notified("notifications/prompts/list_changed")
}

// silent checks that a cancelled request was not answered, nor is anything said for it.
func (c *lineClient) silent(id int) {
	c.test().Helper()
	c.tool("echo", M{"text": "what came before has arrived"})
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.answers[string(encodeJSON(c.test(), id))]
	assert.Truef(c.test(), open, "request %d was answered after its cancel", id)
}

// isSilentWhenCancelled cancels every kind of request that waits.
func isSilentWhenCancelled(t *testing.T, c *lineClient) {
	type waiting struct {
		name, method string
		params       M
	}
	all := []waiting{
		{"cancel_wait_prompt", "prompts/get", M{"name": "cancel_wait_prompt", "arguments": M{"tag": "cancel_wait_prompt"}}},
		{"a-resource", "resources/read", M{"uri": "cancel://wait/a-resource"}},
		{"a-completion", "completion/complete", M{
			"ref": M{"type": "ref/prompt", "name": "cancel_wait_prompt"}, "argument": M{"name": "tag", "value": "wait:a-completion"},
		}},
		{"a-method", "heed/wait", M{"tag": "a-method"}},
	}
	if !c.stateless() {
		all = append(all, waiting{"a-subscription", "resources/subscribe", M{"uri": "cancel://subscribe/a-subscription"}})
	}
	for tool, arguments := range toolArguments {
		if arguments == nil {
			given := M{"tag": tool}
			if tool == "cancel_then_nested" {
				given["kind"] = "sampling"
			}
			all = append(all, waiting{tool, "tools/call", M{"name": tool, "arguments": given}})
		}
	}
	for _, w := range all {
		id, _ := c.begin(w.method, w.params)
		c.event(w.name, "started")
		c.notify("notifications/cancelled", M{"requestId": id, "reason": "enough"})
		word := "observed"
		if w.name == "cancel_hook" {
			word = "hook"
		}
		e := c.event(w.name, word)
		assert.Equal(t, "peer", e["origin"], w.name)
		assert.Equal(t, "enough", e["reason"], w.name)
		c.silent(id)
	}
}

// event waits until the server has recorded an event for a tag.
func (c *lineClient) event(tag, word string) M {
	c.test().Helper()
	var found M
	require.Eventually(c.test(), func() bool {
		var list M
		result := c.tool("cancel_events", M{"tag": tag})
		if c.since(sinceStructure) {
			list = result["structuredContent"].(M)
		} else {
			require.NoError(c.test(), json.Unmarshal([]byte(content(result, "text")["text"].(string)), &list))
		}
		for _, e := range list["events"].([]any) {
			if e.(M)["event"] == word {
				found = e.(M)
				return true
			}
		}
		return false
	}, linePatience, 5*time.Millisecond, "%s of %s", word, tag)
	return found
}
