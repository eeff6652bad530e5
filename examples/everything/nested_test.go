package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kinds are what cancel_nested asks for, with a client's answer.
var kinds = []struct{ kind, method, answer string }{
	{"sampling", "sampling/createMessage", `{"role":"assistant","model":"m","content":{"type":"text","text":"hello"}}`},
	{"elicitation_form", "elicitation/create", `{"action":"accept","content":{"name":"Ada"}}`},
	{"elicitation_url", "elicitation/create", `{"action":"accept"}`},
	{"roots", "roots/list", `{"roots":[{"uri":"file:///a"}]}`},
	{"ping", "ping", `{}`},
}

var nestedResult = event{Event: "nested_result"}

func TestNestedIsAnswered(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
				e := c.call("cancel_nested", map[string]any{"tag": "a", "kind": k.kind})
				assert.Equal(t, []event{started}, c.events("a"))
				answerNext(t, c, e, k.method, k.answer)
				assert.Equal(t, "done", e.text(t))
				assert.Equal(t, []event{started, nestedResult}, c.events("a"))
			})
		})
	}
}

func TestNestedIsCancelled(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
				e := c.call("cancel_nested", map[string]any{"tag": "a", "kind": k.kind})
				requests := e.messages(t, k.method)
				require.Len(t, requests, 1)
				c.cancel(e, reason)
				assert.Equal(t, []event{started, cancelledEvent("nested_error", cancellation.Peer)}, c.events("a"))
				e.silent(t)

				retracted := e.messages(t, "notifications/cancelled")
				require.Len(t, retracted, 1)
				assert.JSONEq(t, `{"requestId":`+string(requests[0].ID)+`,"reason":"`+reason+`"}`, string(retracted[0].Params))
				c.respond(requests[0].ID, k.answer) // too late
				assert.Len(t, c.events("a"), 2)
				e.silent(t)
			})
		})
	}
}

func TestNestedWaitsAfterwards(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		e := c.call("cancel_nested", map[string]any{"tag": "a", "kind": "roots", "then_ms": 50})
		answerNext(t, c, e, "roots/list", `{"roots":[]}`)
		require.False(t, e.answered())
		time.Sleep(51 * time.Millisecond)
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, []event{started, nestedResult, elapsed}, c.events("a"))

		e = c.call("cancel_nested", map[string]any{"tag": "b", "kind": "roots", "then_ms": 60_000})
		answerNext(t, c, e, "roots/list", `{"roots":[]}`)
		c.cancel(e, reason)
		assert.Equal(t, []event{started, nestedResult, cancelledEvent("observed", cancellation.Peer)}, c.events("b"))
		e.silent(t)
	})
}

func TestNestedNeedsTheCapability(t *testing.T) {
	for _, era := range eras {
		for _, k := range kinds[:4] {
			t.Run(era.name+"/"+k.kind, func(t *testing.T) {
				inBubble(t, era.stateless, `{}`, func(t *testing.T, c *client) {
					e := c.call("cancel_nested", map[string]any{"tag": "a", "kind": k.kind})
					require.NotNil(t, e.reply(t).Error)
					events := c.events("a")
					require.Len(t, events, 2)
					assert.Equal(t, "nested_error", events[1].Event)
					assert.Empty(t, events[1].Origin, "nobody has cancelled")
					assert.Contains(t, events[1].Reason, "capability")
				})
			})
		}
	}
}

// The client's error is no cancellation.
func TestNestedFails(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		e := c.call("cancel_nested", map[string]any{"tag": "a", "kind": "sampling"})
		requests := e.messages(t, "sampling/createMessage")
		require.Len(t, requests, 1)
		c.send(map[string]any{"jsonrpc": "2.0", "id": requests[0].ID, "error": map[string]any{"code": -1, "message": "no model"}}, nil)
		assert.Contains(t, e.failure(t), "no model")
		events := c.events("a")
		require.Len(t, events, 2)
		assert.Equal(t, "nested_error", events[1].Event)
		assert.Empty(t, events[1].Origin)
		assert.Contains(t, events[1].Reason, "no model")
	})
}

// In the stateless era the handler is parked, and the retry continues it under
// its own id.
func TestNestedIsContinuedByTheRetry(t *testing.T) {
	for _, k := range kinds[:4] {
		t.Run(k.kind, func(t *testing.T) {
			inStatelessEra(t, func(t *testing.T, c *client) {
				arguments := map[string]any{"tag": "a", "kind": k.kind, "then_ms": 60_000}
				asked := parkedFor(t, c.call("cancel_nested", arguments), k.method)
				assert.Equal(t, 1, statsOf(t, c).Parked)
				assert.Equal(t, []event{started}, c.events("a"))

				e := c.request("tools/call", map[string]any{
					"name": "cancel_nested", "arguments": arguments, "requestState": asked.RequestState,
					"inputResponses": map[string]any{asked.keys()[0]: json.RawMessage(k.answer)},
				})
				assert.Equal(t, 0, statsOf(t, c).Parked)
				assert.Equal(t, []event{started, nestedResult}, c.events("a"))
				require.False(t, e.answered())
				c.cancel(e, reason)
				assert.Equal(t, []event{started, nestedResult, cancelledEvent("observed", cancellation.Peer)}, c.events("a"))
				e.silent(t)
			})
		})
	}
}

func parkedFor(t *testing.T, e *exchange, method string) inputRequired {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // what is asked at once is gathered for a moment
	asked := e.input(t)
	require.Len(t, asked.InputRequests, 1)
	require.Equal(t, method, asked.InputRequests[asked.keys()[0]].Method)
	require.NotEmpty(t, asked.RequestState)
	return asked
}

// The handler is freed by a cancel of the id that it was parked for.
func TestNestedIsCancelledWhileParked(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_nested", map[string]any{"tag": "a", "kind": "sampling"})
		parkedFor(t, e, "sampling/createMessage")
		c.cancel(e, reason)
		assert.Equal(t, []event{started, cancelledEvent("nested_error", cancellation.Peer)}, c.events("a"))
		assert.Equal(t, 0, statsOf(t, c).Parked)
	})
}

// There is no ping in the stateless era.
func TestNestedPingInStatelessEra(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		assert.NotEmpty(t, c.call("cancel_nested", map[string]any{"tag": "a", "kind": "ping"}).failure(t))
		events := c.events("a")
		require.Len(t, events, 2)
		assert.Equal(t, "nested_error", events[1].Event)
	})
}

func step(n int) event { return event{Event: "step", Step: n} }

func TestSequenceTakesThreeSteps(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		e := c.call("cancel_sequence", map[string]any{"tag": "a"})
		for range 3 {
			answerNext(t, c, e, "sampling/createMessage", kinds[0].answer)
		}
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, []event{started, step(1), step(2), step(3)}, c.events("a"))
		assert.Len(t, e.messages(t, "sampling/createMessage"), 3)
	})
}

// After the cancel the next step is not taken.
func TestSequenceStops(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		e := c.call("cancel_sequence", map[string]any{"tag": "a"})
		answerNext(t, c, e, "sampling/createMessage", kinds[0].answer)
		c.cancel(e, reason)
		stopped := cancelledEvent("nested_error", cancellation.Peer)
		stopped.Step = 2
		assert.Equal(t, []event{started, step(1), step(2), stopped}, c.events("a"))
		assert.Len(t, e.messages(t, "sampling/createMessage"), 2)
		e.silent(t)
	})
}

func TestSequenceInStatelessEra(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		arguments := map[string]any{"tag": "a"}
		e := c.call("cancel_sequence", arguments)
		for range 3 {
			asked := parkedFor(t, e, "sampling/createMessage")
			e = c.request("tools/call", map[string]any{
				"name": "cancel_sequence", "arguments": arguments, "requestState": asked.RequestState,
				"inputResponses": map[string]any{asked.keys()[0]: json.RawMessage(kinds[0].answer)},
			})
		}
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, []event{started, step(1), step(2), step(3)}, c.events("a"))
	})
}
