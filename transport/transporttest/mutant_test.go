package transporttest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// mutant is a server with one fault, on a stream, and the rule that finds it.
type mutant struct {
	rule    string
	also    []string // related rules, which may find it as well
	setting transporttest.Setting
	fault   fault
}

const (
	handshake = transporttest.StreamHandshake
	stateless = transporttest.StreamStateless
)

// lateAnswer answers calls of a tool after their cancel.
func lateAnswer(tool string, after time.Duration) fault {
	return fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
		if target != nil && target.tool == tool && target.stopped == 0 && target.token == "" {
			b.later(after, func() { b.toClient("%s", answerFor(target.id)) })
		}
		return true
	}}
}

// afterCancel sends something for cancelled calls that report progress.
func afterCancel(line func(c *call) string) fault {
	return fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
		if target != nil && target.token != "" {
			for i := range 4 {
				b.later(time.Duration(i+1)*100*time.Millisecond, func() { b.toClient("%s", line(target)) })
			}
		}
		return true
	}}
}

// deafTo does not hear the cancels for some calls.
func deafTo(which func(c *call) bool) fault {
	return fault{cancel: func(_ *broken, _ wire.Message, target *call, _ []wire.Message) bool {
		return target == nil || !which(target)
	}}
}

func deafToID(id string) fault { return deafTo(func(c *call) bool { return c.id == id }) }

func deafToTool(tool string) fault {
	return deafTo(func(c *call) bool { return c.tool == tool && c.method == "tools/call" })
}

func deafToMethod(method string) fault {
	return deafTo(func(c *call) bool { return c.method == method })
}

// complains answers cancels that are about nothing.
func complains(about func(b *broken, m wire.Message, target *call) bool) fault {
	return fault{cancel: func(b *broken, m wire.Message, target *call, _ []wire.Message) bool {
		if about(b, m, target) {
			b.toClient(`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no such request"}}`)
		}
		return true
	}}
}

// byOther cancels other requests than those that a cancel names.
func byOther(others func(b *broken, id string) []string) fault {
	return fault{cancel: func(b *broken, m wire.Message, _ *call, _ []wire.Message) bool {
		for _, id := range others(b, string(m.Param("requestId"))) {
			b.toServer(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
		}
		return true
	}}
}

// keepsNested does not pass on the cancels of some nested requests.
func keepsNested(which func(m wire.Message) bool) fault {
	return fault{message: func(b *broken, m wire.Message) bool {
		return m.Method != "notifications/cancelled" || !which(b.asked[string(m.Param("requestId"))])
	}}
}

func nestedMethod(method, mode string) fault {
	return keepsNested(func(m wire.Message) bool {
		return m.Method == method && (mode == "" || strings.Contains(string(m.Params), `"mode":"`+mode+`"`))
	})
}

// mute does not answer some calls.
func mute(which func(b *broken, c *call) bool) fault {
	return fault{answer: func(b *broken, c *call, _ wire.Message) bool { return !which(b, c) }}
}

func isWaiting(c *call, ms string) bool { return c.tool == "cancel_wait" && c.argument("ms") == ms }

func sampling(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, id)
}

var goroutinesFigure = regexp.MustCompile(`"goroutines":\d+`)

// mutants break each rule that applies to streams.
func mutants() []mutant {
	valid := func(m wire.Message) bool {
		return regexp.MustCompile(`^("|-?\d)`).Match(m.Param("requestId")) && !strings.Contains(string(m.Params), `"reason":7`)
	}
	return []mutant{
		{rule: "answer-suppressed-result", setting: handshake, fault: fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
			// Not in the bursts, whose calls and cancels come at the same time.
			if target != nil && target.tool == "cancel_wait" && len(b.calls) < 20 && b.cancels == 1 && target.id == "1" {
				b.toClient("%s", answerFor(target.id))
			}
			return true
		}}, also: []string{"silence-burst", "one-write"}},
		{rule: "answer-suppressed-error", setting: handshake, fault: lateAnswer("cancel_error", 0)},
		{rule: "answer-suppressed-panic", setting: handshake, fault: lateAnswer("cancel_panic", 0)},
		{rule: "answer-suppressed-ignored", setting: stateless, fault: lateAnswer("cancel_ignore", 600*time.Millisecond)},
		{rule: "silence-progress", setting: handshake, fault: afterCancel(func(c *call) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":9}}`, c.token)
		})},
		{rule: "silence-log", setting: stateless, fault: afterCancel(func(*call) string {
			return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
		})},
		{rule: "silence-burst", setting: handshake, fault: fault{cancel: func(b *broken, _ wire.Message, target *call, chunk []wire.Message) bool {
			if b.cancels == 99 && target != nil && len(chunk) == 1 {
				b.toClient("%s", answerFor(target.id))
			}
			return true
		}}, also: []string{"steady"}},
		{rule: "initialize-protected", setting: handshake, fault: fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
			if target != nil && target.method == "initialize" {
				b.toClient(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"cancelled"}}`, target.id)
			}
			return true
		}, answer: func(_ *broken, c *call, _ wire.Message) bool { return c.method != "initialize" || c.stopped == 0 }}},
		{rule: "unknown-cancel", setting: handshake, fault: complains(func(_ *broken, m wire.Message, target *call) bool { return target == nil && valid(m) })},
		{rule: "late-cancel", setting: stateless, fault: complains(func(_ *broken, _ wire.Message, target *call) bool {
			return target != nil && target.answered && !target.asked
		})},
		{rule: "duplicate-cancel", setting: handshake, fault: complains(func(_ *broken, _ wire.Message, target *call) bool { return target != nil && target.stopped > 0 })},
		{rule: "malformed-cancel", setting: handshake, fault: fault{cancel: func(b *broken, m wire.Message, _ *call, _ []wire.Message) bool {
			if m.Param("requestId") == nil {
				for _, c := range b.flying() {
					b.toServer(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, c.id)
				}
			}
			return true
		}}},
		{rule: "malformed-cancel", setting: stateless, fault: complains(func(_ *broken, m wire.Message, _ *call) bool { return !valid(m) })},
		{rule: "cancel-with-id", setting: handshake, fault: fault{request: func(b *broken, c *call, _ []wire.Message) bool {
			if c.method == "notifications/cancelled" {
				b.toServer(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":%s}`, c.message.Params)
				return false
			}
			return true
		}}},
		{rule: "id-number", setting: handshake, fault: deafToID("70001")},
		{rule: "id-string", setting: handshake, fault: deafToID(`"call-7"`)},
		{rule: "id-zero", setting: stateless, fault: deafToID("0")},
		{rule: "id-empty", setting: handshake, fault: deafToID(`""`)},
		{rule: "id-negative", setting: handshake, fault: deafToID("-3")},
		{rule: "id-large", setting: handshake, fault: byOther(func(b *broken, id string) []string {
			return sameNumber(b, id, func(f float64) float64 { return f })
		})},
		{rule: "id-fraction", setting: stateless, fault: byOther(func(b *broken, id string) []string {
			return sameNumber(b, id, func(f float64) float64 { return float64(int64(f)) })
		}), also: []string{"id-large"}},
		{rule: "id-kind", setting: handshake, fault: byOther(func(_ *broken, id string) []string {
			if text, err := strconv.Unquote(id); err == nil && regexp.MustCompile(`^\d+$`).MatchString(text) {
				return []string{text}
			}
			return nil
		})},
		{rule: "id-echo", setting: handshake, fault: fault{answer: func(b *broken, c *call, m wire.Message) bool {
			if c.id != "9007199254740993" {
				return true
			}
			b.toClient("%s", strings.Replace(string(m.Raw), c.id, "9007199254740992", 1))
			return false
		}}},
		{rule: "id-reuse", setting: handshake, fault: fault{request: func(b *broken, c *call, _ []wire.Message) bool {
			former := b.find(c.id)
			return former == nil || former.stopped == 0
		}}},
		{rule: "id-duplicate", setting: stateless, fault: fault{request: func(b *broken, c *call, _ []wire.Message) bool {
			former := b.find(c.id)
			return former == nil || former.stopped > 0 || former.answered
		}}},
		{rule: "cancel-first", setting: handshake, fault: fault{
			cancel: func(b *broken, m wire.Message, target *call, _ []wire.Message) bool {
				if target == nil && valid(m) {
					b.calls = append(b.calls, &call{id: string(m.Param("requestId")), method: "remembered"})
				}
				return true
			},
			request: func(b *broken, c *call, _ []wire.Message) bool {
				former := b.find(c.id)
				return former == nil || former.method != "remembered"
			},
		}},
		{rule: "one-write", setting: handshake, fault: fault{cancel: func(_ *broken, m wire.Message, target *call, chunk []wire.Message) bool {
			return target == nil || target.method == "initialize" || !slices.ContainsFunc(chunk, func(o wire.Message) bool { return wire.SameID(string(o.ID), target.id) }) || m.ID != nil
		}}},
		{rule: "progress-order", setting: handshake, fault: fault{message: func(_ *broken, m wire.Message) bool {
			return m.Method != "notifications/progress" || string(m.Param("progress")) != "50"
		}}},
		{rule: "nested-sampling", setting: handshake, fault: nestedMethod("sampling/createMessage", "")},
		{rule: "nested-elicitation-form", setting: handshake, fault: nestedMethod("elicitation/create", "form")},
		{rule: "nested-elicitation-url", setting: handshake, fault: nestedMethod("elicitation/create", "url")},
		{rule: "nested-roots", setting: handshake, fault: nestedMethod("roots/list", "")},
		{rule: "nested-ping", setting: handshake, fault: nestedMethod("ping", "")},
		{rule: "nested-reason", setting: handshake, fault: fault{message: func(b *broken, m wire.Message) bool {
			if m.Method != "notifications/cancelled" || b.asked[string(m.Param("requestId"))].Method != "sampling/createMessage" {
				return true
			}
			b.toClient(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"context done"}}`, m.Param("requestId"))
			return false
		}}},
		{rule: "nested-late-answer", setting: handshake, fault: fault{other: func(b *broken, m wire.Message) bool {
			if m.IsResponse() && len(b.flying()) == 0 && len(b.asked) == 1 {
				b.toClient(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"no such request"}}`, m.ID)
			}
			return true
		}}, also: []string{"nested-sequence"}},
		{rule: "nested-refused", setting: handshake, fault: asksAfterCancel("cancel_then_nested")},
		{rule: "nested-sequence", setting: handshake, fault: asksAfterCancel("cancel_sequence")},
		{rule: "nested-capability", setting: handshake, fault: fault{request: func(b *broken, c *call, _ []wire.Message) bool {
			const none = `"capabilities":{}`
			if c.method != "initialize" || !strings.Contains(string(c.message.Params), none) {
				return true
			}
			b.toServer("%s", strings.Replace(string(c.message.Raw), none, `"capabilities":{"sampling":{}}`, 1))
			return false
		}}},
		{rule: "stateless-asks-nobody", setting: stateless, fault: fault{request: func(b *broken, c *call, _ []wire.Message) bool {
			if c.tool == "cancel_nested" {
				b.toClient("%s", sampling("s1"))
			}
			return true
		}}},
		{rule: "round-cancelled", setting: stateless, fault: deafTo(func(c *call) bool { return c.asked && c.argument("then_ms") == "" })},
		{rule: "retry-cancelled", setting: stateless, fault: deafTo(func(c *call) bool { return c.message.Param("requestState") != nil }), also: []string{"round-late-cancel"}},
		{rule: "round-late-cancel", setting: stateless, fault: fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
			if target != nil && target.asked {
				for _, c := range b.flying() {
					b.toServer(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, c.id)
				}
			}
			return true
		}}},
		{rule: "listen-cancelled", setting: stateless, fault: fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
			if target != nil && target.method == "subscriptions/listen" {
				b.toClient("%s", answerFor(target.id))
			}
			return true
		}}},
		{rule: "reason-delivered", setting: handshake, fault: fault{cancel: func(b *broken, m wire.Message, _ *call, _ []wire.Message) bool {
			var reason string
			_ = json.Unmarshal(m.Param("reason"), &reason) // malformed ones are passed on
			if !strings.Contains(reason, "☃") {
				return true
			}
			b.toServer(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"?"}}`, m.Param("requestId"))
			return false
		}}},
		{rule: "hook-frees", setting: handshake, fault: deafToTool("cancel_hook")},
		{rule: "shield-commits", setting: stateless, fault: deafToTool("cancel_shield")},
		{rule: "step-stops", setting: handshake, fault: deafToTool("cancel_poll")},
		{rule: "foreign-error-answered", setting: handshake, fault: mute(func(_ *broken, c *call) bool { return c.tool == "cancel_foreign" })},
		{rule: "timeout-answered", setting: stateless, fault: mute(func(_ *broken, c *call) bool { return c.tool == "cancel_timeout" })},
		{rule: "cancel-resource", setting: handshake, fault: deafToMethod("resources/read")},
		{rule: "cancel-prompt", setting: stateless, fault: deafToMethod("prompts/get")},
		{rule: "cancel-completion", setting: handshake, fault: deafToMethod("completion/complete")},
		{rule: "cancel-subscribe", setting: handshake, fault: deafToMethod("resources/subscribe")},
		{rule: "cancel-method", setting: stateless, fault: fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
			if target != nil && target.method == "heed/wait" {
				b.toClient("%s", answerFor(target.id))
			}
			return true
		}}},
		{rule: "batch-member-cancelled", setting: handshake, fault: fault{message: func(_ *broken, m wire.Message) bool { return m.Batch == nil }}},
		{rule: "batch-refused", setting: stateless, fault: fault{other: func(b *broken, m wire.Message) bool {
			if m.Batch != nil {
				b.server.Close()
			}
			return true
		}}},
		{rule: "eof-idle", setting: handshake, fault: fault{end: func(b *broken) bool { return len(b.calls) > 2 }}},
		{rule: "eof-running", setting: stateless, fault: keepsInput(func(b *broken) bool { return isWaiting(last(b, "cancel_wait"), "") && b.cancels == 0 }), also: []string{"shutdown-running"}},
		{rule: "eof-ignored", setting: handshake, fault: keepsInput(func(b *broken) bool { return last(b, "cancel_ignore").argument("ms") == "144000" })},
		{rule: "eof-after-cancel", setting: handshake, fault: fault{end: func(b *broken) bool {
			if b.cancels == 1 && last(b, "cancel_error").tool == "" {
				_, _ = b.client.Write([]byte(`{"jsonrpc":"2.0","id":`))
			}
			return true
		}}},
		{rule: "shutdown-running", setting: handshake, fault: fault{deaf: true}, also: []string{"shutdown-grace", "shutdown-answers"}},
		{rule: "shutdown-grace", setting: handshake, fault: mute(func(b *broken, c *call) bool { return b.down && isWaiting(c, "500") })},
		{rule: "shutdown-answers", setting: stateless, fault: mute(func(b *broken, c *call) bool { return b.down && isWaiting(c, "") })},
		{rule: "no-stray-output", setting: stateless, fault: fault{request: func(b *broken, c *call, _ []wire.Message) bool {
			if c.method == "heedcheck/unknown" {
				b.toClient("warning: unknown method")
			}
			return true
		}}},
		{rule: "flood", setting: handshake, fault: fault{request: func(b *broken, c *call, _ []wire.Message) bool {
			return c.method != "ping" || len(b.flying()) < 250
		}}},
		{rule: "steady", setting: stateless, fault: fault{answer: func(b *broken, c *call, m wire.Message) bool {
			if c.tool != "cancel_stats" {
				return true
			}
			// Not a figure of this process, in which other mutants are tried meanwhile.
			b.toClient("%s", goroutinesFigure.ReplaceAllString(string(m.Raw), fmt.Sprintf(`"goroutines":%d`, 100+b.cancels)))
			return false
		}}},
	}
}

// keepsInput does not notice the end of the input.
func keepsInput(when func(b *broken) bool) fault {
	return fault{end: func(b *broken) bool { return !when(b) }}
}

// last is the last call of a tool, or one of none.
func last(b *broken, tool string) *call {
	for i := len(b.calls) - 1; i >= 0; i-- {
		if b.calls[i].tool == tool {
			return b.calls[i]
		}
	}
	return &call{}
}

// sameNumber are the ids in flight that a careless server takes for the same.
func sameNumber(b *broken, id string, careless func(float64) float64) []string {
	want, err := strconv.ParseFloat(id, 64)
	if err != nil {
		return nil
	}
	var all []string
	for _, c := range b.flying() {
		if got, err := strconv.ParseFloat(c.id, 64); err == nil && careless(got) == careless(want) && c.id != id {
			all = append(all, c.id)
		}
	}
	return all
}

// asksAfterCancel asks the client for a call that it has cancelled.
func asksAfterCancel(tool string) fault {
	return fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
		if target != nil && target.tool == tool {
			b.later(50*time.Millisecond, func() { b.toClient("%s", sampling("late")) })
		}
		return true
	}}
}
