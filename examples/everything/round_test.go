package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inputRequired is a result that asks for input.
type inputRequired struct {
	ResultType    string `json:"resultType"`
	InputRequests map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"inputRequests"`
	RequestState string `json:"requestState"`
}

func (e *exchange) input(t *testing.T) inputRequired {
	t.Helper()
	var r inputRequired
	require.NoError(t, json.Unmarshal(e.result(t), &r))
	require.Equal(t, "input_required", r.ResultType, "%s", e.answer)
	return r
}

func (r inputRequired) keys() []string { return slices.Sorted(maps.Keys(r.InputRequests)) }

// retry calls a tool once more, with answers to what it asked for.
func (c *client) retry(tool, state string, answers map[string]any) *exchange {
	params := map[string]any{"name": tool}
	if state != "" {
		params["requestState"] = state
	}
	if answers != nil {
		params["inputResponses"] = answers
	}
	return c.request("tools/call", params)
}

func accept(content map[string]any) map[string]any {
	return map[string]any{"action": "accept", "content": content}
}

func says(text string) map[string]any {
	return map[string]any{"role": "assistant", "model": "m", "content": map[string]any{"type": "text", "text": text}}
}

func roots(uris ...string) map[string]any {
	list := []map[string]any{}
	for _, uri := range uris {
		list = append(list, map[string]any{"uri": uri})
	}
	return map[string]any{"roots": list}
}

func inStatelessEra(t *testing.T, test func(t *testing.T, c *client)) {
	inBubble(t, true, everyCapability, test)
}

func TestRoundOfElicitation(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		const tool = "test_input_required_result_elicitation"
		for _, answers := range []map[string]any{
			nil,
			{},
			{"other": accept(map[string]any{"name": "Ada"})},
			{"user_name": map[string]any{"action": "decline"}},
			{"user_name": map[string]any{"action": "accept"}},
			{"user_name": accept(map[string]any{"name": 12345})},
			{"user_name": 12345},
			{"user_name": nil},
			{"user_name": says("Ada")},
		} {
			asked := c.retry(tool, "", answers).input(t)
			require.Equal(t, []string{"user_name"}, asked.keys(), "%v", answers)
			request := asked.InputRequests["user_name"]
			assert.Equal(t, "elicitation/create", request.Method)
			var params struct{ Message string }
			require.NoError(t, json.Unmarshal(request.Params, &params))
			assert.Equal(t, "What is your name?", params.Message)
		}
		name := accept(map[string]any{"name": "Ada"})
		assert.Equal(t, "Hello, Ada!", c.retry(tool, "", map[string]any{"user_name": name}).text(t))
		assert.Equal(t, "Hello, Ada!", c.retry(tool, "", map[string]any{"user_name": name, "more": name}).text(t))
		assert.NotNil(t, c.request("tools/call", map[string]any{"name": tool, "inputResponses": nil}).reply(t).Error)
	})
}

func TestRoundOfSampling(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		const tool = "test_input_required_result_sampling"
		asked := c.retry(tool, "", nil).input(t)
		require.Equal(t, []string{"capital_question"}, asked.keys())
		assert.Equal(t, "sampling/createMessage", asked.InputRequests["capital_question"].Method)
		assert.JSONEq(t, `{"maxTokens":100,"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}]}`,
			string(asked.InputRequests["capital_question"].Params))
		assert.Equal(t, "The model says: Paris", c.retry(tool, "", map[string]any{"capital_question": says("Paris")}).text(t))
	})
}

func TestRoundOfRoots(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		const tool = "test_input_required_result_list_roots"
		asked := c.retry(tool, "", nil).input(t)
		require.Equal(t, []string{"client_roots"}, asked.keys())
		assert.Equal(t, "roots/list", asked.InputRequests["client_roots"].Method)
		assert.JSONEq(t, `{}`, string(asked.InputRequests["client_roots"].Params))
		assert.Equal(t, "The client has 2 roots: file:///a, file:///b",
			c.retry(tool, "", map[string]any{"client_roots": roots("file:///a", "file:///b")}).text(t))
		assert.Equal(t, "The client has 0 roots: ", c.retry(tool, "", map[string]any{"client_roots": roots()}).text(t))
	})
}

// Both tools with a state: it must come back, and as it was.
func TestRoundWithState(t *testing.T) {
	for _, tool := range []string{"test_input_required_result_request_state", "test_input_required_result_tampered_state"} {
		t.Run(tool, func(t *testing.T) {
			inStatelessEra(t, func(t *testing.T, c *client) {
				confirmed := map[string]any{"confirm": accept(map[string]any{"ok": true})}
				asked := c.retry(tool, "", nil).input(t)
				require.Equal(t, []string{"confirm"}, asked.keys())
				require.NotEmpty(t, asked.RequestState)

				c.retry(tool, "", confirmed).input(t)
				c.retry(tool, asked.RequestState, nil).input(t)
				for _, changed := range []string{asked.RequestState + "-TAMPERED", "-TAMPERED", "waits for the confirmation", asked.RequestState[1:]} {
					assert.NotNil(t, c.retry(tool, changed, confirmed).reply(t).Error, "%q", changed)
				}
				assert.Contains(t, c.retry(tool, asked.RequestState, confirmed).text(t), "state-ok")
			})
		})
	}
}

func TestRoundWithThreeInputs(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		const tool = "test_input_required_result_multiple_inputs"
		asked := c.retry(tool, "", nil).input(t)
		require.Equal(t, []string{"client_roots", "greeting", "user_name"}, asked.keys())
		assert.NotEmpty(t, asked.RequestState)
		methods := map[string]bool{}
		for _, request := range asked.InputRequests {
			methods[request.Method] = true
		}
		assert.Len(t, methods, 3)

		answers := map[string]any{
			"user_name": accept(map[string]any{"name": "Ada"}), "greeting": says("Hi"), "client_roots": roots("file:///a"),
		}
		for missing := range answers {
			some := maps.Clone(answers)
			delete(some, missing)
			c.retry(tool, asked.RequestState, some).input(t)
		}
		assert.Equal(t, "Hi, Ada! The client has 1 roots.", c.retry(tool, asked.RequestState, answers).text(t))
	})
}

func TestTwoRounds(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		const tool = "test_input_required_result_multi_round"
		first := c.retry(tool, "", nil).input(t)
		require.Equal(t, []string{"step1"}, first.keys())
		require.NotEmpty(t, first.RequestState)

		second := c.retry(tool, first.RequestState, map[string]any{"step1": accept(map[string]any{"name": "Ada"})}).input(t)
		require.Equal(t, []string{"step2"}, second.keys())
		require.NotEmpty(t, second.RequestState)
		assert.NotEqual(t, first.RequestState, second.RequestState)

		again := c.retry(tool, second.RequestState, nil).input(t)
		assert.Equal(t, []string{"step2"}, again.keys(), "what was not answered is asked again")
		assert.Equal(t, "Ada likes red.", c.retry(tool, second.RequestState, map[string]any{"step2": accept(map[string]any{"color": "red"})}).text(t))
	})
}

func TestRoundAsksWhatTheClientCanDo(t *testing.T) {
	const tool = "test_input_required_result_capabilities"
	for capabilities, want := range map[string][]string{
		`{"sampling":{}}`:            {"greeting"},
		`{"elicitation":{}}`:         {"user_name"},
		`{"roots":{}}`:               {"client_roots"},
		`{"sampling":{},"roots":{}}`: {"client_roots", "greeting"},
		`{"elicitation":{"url":{}}}`: nil,
		everyCapability:              {"client_roots", "greeting", "user_name"},
		`{}`:                         nil,
	} {
		t.Run(strings.NewReplacer(`"`, "", "{}", "").Replace(capabilities), func(t *testing.T) {
			inBubble(t, true, capabilities, func(t *testing.T, c *client) {
				e := c.retry(tool, "", nil)
				if want == nil {
					assert.Contains(t, e.text(t), "nothing")
					return
				}
				assert.Equal(t, want, e.input(t).keys())
				if slices.Contains(want, "greeting") {
					assert.Contains(t, c.retry(tool, "", map[string]any{"greeting": says("Hi")}).text(t), "1 question")
				}
			})
		})
	}
}

// In the handshake era the server asks by itself and calls the tool again.
func TestRoundsInHandshakeEra(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		e := c.call("test_input_required_result_multi_round", nil)
		answerNext(t, c, e, "elicitation/create", `{"action":"accept","content":{"name":"Ada"}}`)
		answerNext(t, c, e, "elicitation/create", `{"action":"accept","content":{"color":"red"}}`)
		assert.Equal(t, "Ada likes red.", e.text(t))

		e = c.call("test_input_required_result_sampling", nil)
		answerNext(t, c, e, "sampling/createMessage", `{"role":"assistant","model":"m","content":{"type":"text","text":"Paris"}}`)
		assert.Equal(t, "The model says: Paris", e.text(t))
	})
}

// answerNext answers the last request that was sent for e.
func answerNext(t *testing.T, c *client, e *exchange, method, result string) message {
	t.Helper()
	requests := e.messages(t, method)
	require.NotEmpty(t, requests, "the client was not asked")
	last := requests[len(requests)-1]
	c.respond(last.ID, result)
	return last
}
