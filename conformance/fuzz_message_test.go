package conformance_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// fuzzer makes messages: good ones from the table of methods, and what becomes of them when
// members are changed, bytes are lost, and things are said twice.
type fuzzer struct {
	*rand.Rand
	states []string // requestStates that the server gave out
	tasks  []string // ids of tasks that it has created
	last   int      // the last id that was given to a request
	lossy  bool     // answers may be lost, and with them the ids of tasks that wait for input
}

func newFuzzer(seed uint64) *fuzzer { return &fuzzer{Rand: rand.New(rand.NewPCG(seed, 7))} }

func pick[T any](f *fuzzer, from ...T) T { return from[f.IntN(len(from))] }

// odds is true once in n times.
func (f *fuzzer) odds(n int) bool { return f.IntN(n) == 0 }

var (
	fuzzVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", newestHandshake, newest, newest}
	fuzzLevels   = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	fuzzTags     = []string{"a", "b", "grün"}
	// fuzzIDs are few, so that requests, cancels and answers meet.
	fuzzIDs = []string{"0", "1", "2", "7", `"7"`, `""`, `"a"`, `"\u0061"`, "9007199254740993", "-1", "3.7", "1e2", "null", "true", "[]", "{}", `"\ud800"`, "1.0"}
)

// id is an id for a request, as JSON text; most are those of real clients.
func (f *fuzzer) id() string {
	if f.odds(8) {
		return pick(f, fuzzIDs...)
	}
	f.last++
	return fmt.Sprint(f.last + 1000)
}

// recent is an id that was likely given to a request of late.
func (f *fuzzer) recent() string {
	if f.odds(8) {
		return pick(f, fuzzIDs...)
	}
	return fmt.Sprint(f.last + 1000 - f.IntN(12))
}

// fuzzCall makes the arguments of one tool. Waits are short: what ignores its token has
// to end by itself.
type fuzzCall struct {
	tool string
	args func(f *fuzzer) M
}

func tagged(more M) func(*fuzzer) M {
	return func(f *fuzzer) M {
		m := M{"tag": pick(f, fuzzTags...)}
		for name, value := range more {
			m[name] = value
		}
		return m
	}
}

func bare(*fuzzer) M { return M{} }

var fuzzCalls = []fuzzCall{
	{"echo", func(f *fuzzer) M { return M{"text": f.text()} }},
	{"echo", func(f *fuzzer) M { return M{"text": f.text(), "progress": f.IntN(5)} }},
	{"cancel_wait", tagged(M{"ms": 30})}, {"cancel_wait", tagged(nil)},
	{"cancel_poll", tagged(M{"steps": 5, "step_ms": 5})},
	{"cancel_ignore", tagged(M{"ms": 40})}, {"cancel_ignore", tagged(M{"ms": 40, "log": true})},
	{"cancel_error", tagged(nil)}, {"cancel_panic", tagged(nil)}, {"cancel_hook", tagged(nil)},
	{"cancel_shield", tagged(M{"ms": 20})}, {"cancel_foreign", tagged(nil)}, {"cancel_timeout", tagged(M{"ms": 10})}, {"cancel_timeout", tagged(nil)},
	{"cancel_nested", func(f *fuzzer) M {
		return M{"tag": "n", "kind": pick(f, "sampling", "elicitation_form", "elicitation_url", "roots", "ping")}
	}},
	{"cancel_then_nested", func(f *fuzzer) M { return M{"tag": "n", "kind": pick(f, "sampling", "roots")} }},
	{"cancel_sequence", tagged(nil)}, {"cancel_events", bare}, {"cancel_stats", bare},
	{"test_simple_text", bare}, {"test_image_content", bare}, {"test_audio_content", bare}, {"test_embedded_resource", bare},
	{"test_multiple_content_types", bare}, {"test_tool_with_logging", bare}, {"test_tool_with_progress", bare}, {"test_error_handling", bare},
	{"test_sampling", func(f *fuzzer) M { return M{"prompt": f.text()} }}, {"test_elicitation", func(f *fuzzer) M { return M{"message": f.text()} }},
	{"test_elicitation_sep1034_defaults", bare}, {"test_elicitation_sep1330_enums", bare},
	{"test_reconnection", bare}, {"test_x_mcp_header", func(f *fuzzer) M { return M{"region": "Hello"} }},
	{"test_missing_capability", bare}, {"test_streaming_elicitation", bare}, {"test_logging_tool", bare},
	{"test_trigger_tool_change", bare}, {"test_trigger_prompt_change", bare},
	{"test_input_required_result_elicitation", bare}, {"test_input_required_result_sampling", bare}, {"test_input_required_result_list_roots", bare},
	{"test_input_required_result_request_state", bare}, {"test_input_required_result_multiple_inputs", bare},
	{"test_input_required_result_multi_round", bare}, {"test_input_required_result_tampered_state", bare}, {"test_input_required_result_capabilities", bare},
	{"greet", func(f *fuzzer) M { return M{"name": f.text()} }}, {"slow_compute", func(f *fuzzer) M { return M{"seconds": f.IntN(2), "label": "l"} }},
	{"failing_job", bare}, {"protocol_error_job", bare}, {"confirm_delete", func(f *fuzzer) M { return M{"filename": "x"} }},
	{"multi_input", bare}, {"test_tool_with_task", bare}, {"nobody", bare},
}

func (f *fuzzer) text() string {
	return pick(f, "hello", "", "ü\u2028😀", "a\x00b\r\n", "%s%n", strings.Repeat("x", 5000), `"\`, "</script>")
}

func (f *fuzzer) uri() string {
	return pick(f, "test://static-text", "test://static-binary", "test://empty-text", "test://watched-resource", "test://template/1/data",
		"cancel://wait/a", "cancel://subscribe/b", "skill://stop-a-batch/SKILL.md", "skill://stop-a-batch", "test://nobody", "\x01\x7f", "", "x", "file:///etc/passwd", "test://template/%2e%2e%00/data")
}

// message is a message that is right, but for what its values say: its method and its params.
func (f *fuzzer) message() (method string, params M) {
	method = pick(f, "tools/call", "tools/call", "tools/call", "tools/call", "tools/call", "tools/list", "prompts/list", "prompts/get", "resources/list", "resources/templates/list",
		"resources/read", "resources/read", "completion/complete", "resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping", "initialize", "server/discover",
		"subscriptions/listen", "tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "skills/list", "skills/get", "resources/directory/read", "heed/wait", "unknown/method",
		"notifications/cancelled", "notifications/cancelled", "notifications/cancelled", "notifications/initialized", "notifications/progress", "notifications/roots/list_changed", "notifications/unknown", "")
	params = M{}
	switch method {
	case "tools/call":
		c := pick(f, fuzzCalls...)
		for f.lossy && (c.tool == "confirm_delete" || c.tool == "multi_input") {
			c = pick(f, fuzzCalls...)
		}
		params["name"] = c.tool
		if args := c.args(f); len(args) > 0 || f.odds(2) {
			params["arguments"] = args
		}
		f.retry(params)
	case "prompts/get":
		params["name"] = pick(f, "test_simple_prompt", "test_prompt_with_arguments", "test_prompt_with_embedded_resource", "test_prompt_with_image", "test_input_required_result_prompt", "cancel_wait_prompt", "nobody")
		params["arguments"] = M{"arg1": f.text(), "arg2": "b", "resourceUri": "test://x", "tag": "a"}
		f.retry(params)
	case "resources/read", "resources/subscribe", "resources/unsubscribe", "skills/get", "resources/directory/read":
		params["uri"] = f.uri()
	case "completion/complete":
		params["ref"] = pick(f, M{"type": "ref/prompt", "name": "cancel_wait_prompt"}, M{"type": "ref/prompt", "name": "test_prompt_with_arguments"}, M{"type": "ref/resource", "uri": "test://template/{id}/data"}, M{"type": "x"})
		params["argument"] = M{"name": pick(f, "tag", "arg1", "id"), "value": pick(f, "", "test", "wait:a")}
	case "logging/setLevel":
		params["level"] = pick(f, append(fuzzLevels, "loud")...)
	case "initialize":
		params = M{"protocolVersion": pick(f, append(fuzzVersions, "1900-01-01", "")...), "capabilities": f.capabilities(), "clientInfo": M{"name": "fuzzer", "version": "1"}}
	case "subscriptions/listen":
		params["notifications"] = M{"toolsListChanged": f.odds(2), "promptsListChanged": f.odds(2), "resourcesListChanged": f.odds(2), "resourceSubscriptions": []string{f.uri()}, "taskIds": []string{f.task()}}
	case "tasks/get", "tasks/cancel":
		params["taskId"] = f.task()
	case "tasks/update":
		params["taskId"] = f.task()
		params["inputResponses"] = M{"input": f.response()}
	case "heed/wait":
		params["tag"] = pick(f, fuzzTags...)
	case "notifications/cancelled":
		params["requestId"] = json.RawMessage(f.recent())
		if f.odds(2) {
			params["reason"] = f.text()
		}
	case "notifications/progress":
		params = M{"progressToken": 1, "progress": 1}
	}
	if f.odds(8) {
		params["cursor"] = pick(f, "", "x", "bjph")
	}
	return method, params
}

// retry adds what a second round brings.
func (f *fuzzer) retry(params M) {
	if f.odds(3) {
		responses := M{}
		for _, key := range []string{"user_name", "capital_question", "client_roots", "confirm", "step1", "step2", "greeting", "user_context", "input", "nobody"} {
			if f.odds(2) {
				responses[key] = f.response()
			}
		}
		params["inputResponses"] = responses
	}
	if len(f.states) > 0 && f.odds(3) {
		params["requestState"] = pick(f, f.states...)
	}
}

func (f *fuzzer) task() string {
	if len(f.tasks) > 0 && !f.odds(5) {
		return pick(f, f.tasks...)
	}
	return "nobody's"
}

// response is how a client answers what it is asked.
func (f *fuzzer) response() any {
	return pick[any](f,
		M{"action": "accept", "content": M{"name": "n", "color": "c", "ok": true, "confirm": true, "context": "c", "username": "u", "email": "a@b.c"}},
		M{"action": "decline"}, M{"action": "cancel"},
		M{"role": "assistant", "model": "m", "content": M{"type": "text", "text": "Paris"}},
		M{"roots": []M{{"uri": "file:///x", "name": "x"}}}, M{}, 12345, nil, "x", []any{})
}

func (f *fuzzer) capabilities() M {
	c := M{}
	for _, name := range []string{"sampling", "elicitation", "roots"} {
		if !f.odds(3) {
			c[name] = M{}
		}
	}
	if f.odds(3) {
		c["elicitation"] = M{"form": M{}, "url": M{}}
	}
	if f.odds(2) {
		c["extensions"] = M{"io.modelcontextprotocol/tasks": M{}}
	}
	return c
}

// meta is the _meta of a request in an era.
func (f *fuzzer) meta(stateless bool) M {
	m := M{}
	if stateless {
		m["io.modelcontextprotocol/protocolVersion"] = newest
		m["io.modelcontextprotocol/clientCapabilities"] = f.capabilities()
		if f.odds(2) {
			m["io.modelcontextprotocol/clientInfo"] = M{"name": "fuzzer", "version": "1"}
		}
		if f.odds(2) {
			m["io.modelcontextprotocol/logLevel"] = pick(f, fuzzLevels...)
		}
	}
	if f.odds(2) {
		m["progressToken"] = pick[any](f, 1, "p", json.RawMessage("9007199254740993"), json.RawMessage("1.5"))
	}
	return m
}

// endless matches arguments that bytes have made longer than a test can wait for, of tools
// that nothing stops.
var endless = regexp.MustCompile(`"(ms|seconds|steps|step_ms)"\s*:\s*\d{4,}`)

// next is one message, right or wrong, as bytes.
func (f *fuzzer) next(stateless bool) []byte {
	for {
		method, params := f.message()
		raw := f.encode(stateless, method, params)
		for f.odds(3) {
			raw = f.mutate(raw)
		}
		if !endless.Match(raw) {
			return raw
		}
	}
}

func (f *fuzzer) encode(stateless bool, method string, params M) []byte {
	if meta := f.meta(stateless); len(meta) > 0 {
		params["_meta"] = meta
	}
	m := M{"jsonrpc": "2.0", "method": method}
	if len(params) > 0 || f.odds(2) {
		m["params"] = params
	}
	if notification := strings.HasPrefix(method, "notifications/"); notification == f.odds(30) {
		m["id"] = json.RawMessage(f.id())
	}
	raw, err := json.Marshal(m)
	if err != nil { // an id with a lone surrogate
		return []byte(`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`)
	}
	return raw
}
