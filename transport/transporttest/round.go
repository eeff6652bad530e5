package transporttest

import (
	"encoding/json"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: the stateless era, where a server asks by its result and
// is answered by a retry.

var roundRules = []Rule{
	{
		Name: "stateless-asks-nobody", Page: pageHTTP, Level: Must, Settings: Statelesses, Needs: []Need{NeedSampling},
		Explanation: "the server sends no requests: what it needs of the client it says in its result",
		run: func(p *probe) {
			c := p.open()
			w := c.nested(kinds[0]).send()
			w.request.answer(p.limits.Prompt, "a call that needs the client's input")
			for _, m := range c.received(w.request.from, wire.Message.IsRequest) {
				p.failf("the server sends a request: %.200s", m.Raw)
			}
		},
	},
	{
		Name: "round-cancelled", Page: pageInput, Level: Quality, Settings: StreamStateless, Needs: []Need{"cancel_nested"},
		Explanation: "a cancel for the call that has asked for input ends the handler that waits for it",
		run: func(p *probe) {
			c := p.open()
			w := c.nested(kinds[0]).send()
			w.asksByResult()
			if _, returned := w.has("returned"); returned {
				p.skipf("the handler has returned to ask for input, so that none waits")
			}
			w.request.stop(stop)
			w.await("nested_error").cancelledBy(p, "peer", stop)
		},
	},
	{
		Name: "retry-cancelled", Page: pageInput, Level: Should, Settings: Statelesses, Needs: []Need{"cancel_nested"},
		Explanation: "a cancel of the retry that brings the input ends the whole operation",
		run: func(p *probe) {
			c := p.open()
			w := c.nestedThenWaits()
			retry := w.retry(w.asksByResult())
			w.await("nested_result")
			w.waits(retry)
			retry.stop(stop)
			w.await("observed")
		},
	},
	{
		Name: "round-late-cancel", Page: pageInput, Level: Quality, Settings: StreamStateless, Needs: []Need{"cancel_nested"},
		Explanation: "a late cancel for the call that has asked for input does not touch the retry",
		run: func(p *probe) {
			c := p.open()
			w := c.nestedThenWaits()
			retry := w.retry(w.asksByResult())
			w.await("nested_result")
			w.request.stop(stop)
			c.fence("after a late cancel")
			p.sleep(p.limits.Quiet)
			w.waits(retry)
			retry.stop(stop)
			w.await("observed")
		},
	},
	{
		Name: "listen-cancelled", Page: pageListen, Level: Must, Settings: StreamStateless,
		Explanation: "a cancelled subscription ends in silence, and another one goes on",
		run:         listenIsCancelled,
	},
}

func (c *client) nestedThenWaits() *work {
	return c.fixture("cancel_nested", map[string]any{"kind": kinds[0].name, "then_ms": 60_000}).send()
}

// asksFor is a result that asks for input.
type asksFor struct {
	ResultType    string                     `json:"resultType"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	RequestState  string                     `json:"requestState"`
}

// asksByResult waits for the result that asks for input.
func (w *work) asksByResult() asksFor {
	m := w.request.result(w.c.p.limits.Prompt, "a call that needs the client's input")
	var a asksFor
	if err := json.Unmarshal(m.Result, &a); err != nil || a.ResultType != "input_required" || len(a.InputRequests) != 1 {
		w.c.p.failf("the result does not ask for one input: %.300s", m.Raw)
	}
	return a
}

// retry sends the call again with the input.
func (w *work) retry(a asksFor) *request {
	o := w.o
	o.id = ""
	params := map[string]any{}
	if a.RequestState != "" {
		params["requestState"] = a.RequestState
	}
	for key, value := range w.o.params {
		params[key] = value
	}
	responses := map[string]any{}
	for key := range a.InputRequests {
		responses[key] = rawJSON(kinds[0].answer)
	}
	params["inputResponses"] = responses
	o.params = params
	return w.c.send(o)
}

// waits fails the rule when work that a retry continues has ended.
func (w *work) waits(retry *request) {
	if e, found := w.has("observed"); found {
		w.c.p.failf("the operation is cancelled: %s %q", e.Origin, e.Reason)
	}
	retry.silent(retry.from, "the retry, which still waits,")
}

func listenIsCancelled(p *probe) {
	c := p.open()
	listen := func() *request {
		return c.send(option{method: "subscriptions/listen", params: map[string]any{
			"notifications": map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true},
		}})
	}
	first, second := listen(), listen()
	for _, r := range []*request{first, second} {
		e, ok := p.wait(p.limits.Prompt, r.from, func(e wire.Entry) bool { return acknowledges(e.Message, r.id) || r.isAnswer(e) })
		switch {
		case !ok:
			p.failf("subscriptions/listen is neither acknowledged nor answered")
		case e.Message.Error != nil:
			p.skipf("the server has no subscriptions: %.200s", e.Message.Raw)
		case e.Message.IsResponse():
			p.failf("subscriptions/listen is answered at once: %.200s", e.Message.Raw)
		}
	}
	since := p.log.Len()
	first.stop(stop)
	c.fence("after the cancel of a subscription")
	p.sleep(p.limits.Quiet)
	first.silent(since, "the cancelled subscription")
	second.silent(since, "another subscription")
	for _, m := range c.received(since, wire.Message.IsNotification) {
		if m.Method == "notifications/cancelled" {
			p.failf("the server ends a subscription that the client has cancelled, or another: %.200s", m.Raw)
		}
	}
}

// acknowledges tells whether m is the acknowledgement of a subscription.
func acknowledges(m wire.Message, id string) bool {
	if m.Method != "notifications/subscriptions/acknowledged" {
		return false
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(m.Param("_meta"), &meta) // without it there is no id
	return wire.SameID(string(meta["io.modelcontextprotocol/subscriptionId"]), id)
}
