package transporttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: requests that the server makes for a call end with it.

// kind is what a server can ask its client for, with an answer to it.
type kind struct {
	name   string // as cancel_nested calls it
	need   Need
	method string
	answer string
}

var kinds = []kind{
	{"sampling", NeedSampling, "sampling/createMessage", `{"role":"assistant","model":"m","content":{"type":"text","text":"hello"}}`},
	{"elicitation_form", NeedForm, "elicitation/create", `{"action":"accept","content":{"name":"Ada"}}`},
	{"elicitation_url", NeedURL, "elicitation/create", `{"action":"accept"}`},
	{"roots", NeedRoots, "roots/list", `{"roots":[{"uri":"file:///a"}]}`},
	{"ping", NeedPing, "ping", `{}`},
}

var nestedRules = []Rule{
	nestedRule("nested-sampling", kinds[0]),
	nestedRule("nested-elicitation-form", kinds[1]),
	nestedRule("nested-elicitation-url", kinds[2]),
	nestedRule("nested-roots", kinds[3]),
	nestedRule("nested-ping", kinds[4]),
	{
		Name: "nested-stream", Page: pageTransport, Level: Should, Settings: HTTPHandshake, Needs: []Need{NeedSampling},
		Explanation: "what is asked for a call comes on its response, and not on the stream that the client opens by GET",
		run:         asksOnTheResponse,
	},
	{
		Name: "nested-late-answer", Page: pageCancel, Level: Should, Settings: asking, Needs: []Need{NeedSampling},
		Explanation: "an answer to a request that the server has withdrawn is dropped, and the server lives on",
		run:         lateAnswer,
	},
	{
		Name: "nested-reason", Page: pageCancel, Level: Quality, Settings: asking, Needs: []Need{NeedSampling},
		Explanation: "the cancel of a request for a call that is cancelled has the reason of the call's",
		run:         reasonIsPassedOn,
	},
	{
		Name: "nested-refused", Page: pageCancel, Level: Quality, Settings: asking, Needs: []Need{"cancel_then_nested"},
		Explanation: "a handler whose call was cancelled cannot ask the client any more",
		run: func(p *probe) {
			c := p.openListening()
			w := c.fixture("cancel_then_nested", map[string]any{"kind": "sampling"}).begin()
			since := p.log.Len()
			w.request.stop(stop)
			w.await("nested_error")
			p.sleep(p.limits.Quiet)
			for _, m := range c.received(since, wire.Message.IsRequest) {
				p.failf("the server asks for a call that was cancelled: %.200s", m.Raw)
			}
		},
	},
	{
		Name: "nested-sequence", Page: pageCancel, Level: Should, Settings: asking, Needs: []Need{"cancel_sequence"},
		Explanation: "a handler that asks the client again and again takes no further step after the cancel",
		run:         sequenceStops,
	},
	{
		Name: "nested-capability", Page: pageLifecycle, Level: Must, Settings: asking, Needs: []Need{NeedSampling},
		Explanation: "a client without the capability is not asked; the call fails at once",
		run:         capabilityIsRespected,
	},
}

func nestedRule(name string, k kind) Rule {
	return Rule{
		Name: name, Page: pageCancel, Level: Should, Settings: asking, Needs: []Need{k.need},
		Explanation: k.method + " for a call that is cancelled is cancelled too, on the call's response if it was asked there",
		run:         func(p *probe) { nestedIsCancelled(p, k) },
	}
}

// openListening is open, and over HTTP opens the stream by GET as well: servers may ask there.
func (p *probe) openListening() *client {
	c := p.open()
	if c.stream != nil {
		return c
	}
	h := c.headers("", "")
	h["Accept"] = []string{acceptStream}
	x := c.http.Do(http.MethodGet, h, nil)
	p.onClean(x.Drop)
	// Headers that are held back until there is a message are no reason to wait.
	p.listen(min(p.limits.Prompt, time.Second), 0, func(e wire.Entry) bool {
		return e.Stream == x.Stream && (e.Kind == wire.Opened || e.Kind == wire.Closed)
	})
	if status := x.Status(); status == 0 || status == http.StatusOK {
		c.listening = x.Stream
	}
	return c
}

// nested is work that asks the client for something.
func (c *client) nested(k kind) *work {
	if c.p.survey.fixtures() {
		return c.fixture("cancel_nested", map[string]any{"kind": k.name})
	}
	return c.found(k.need, 0)
}

// asked waits until the server asks for something.
func (w *work) asked(method string, from int) wire.Entry {
	p := w.c.p
	e, ok := p.wait(p.limits.Prompt, from, func(e wire.Entry) bool {
		return e.Kind == wire.Received && e.Message.IsRequest() && e.Message.Method == method || w.request.isAnswer(e)
	})
	switch {
	case !ok:
		where := ""
		switch {
		case w.request.x != nil && w.c.listening == "":
			where = ", on the response of the call: there is no stream by GET"
		case w.request.x != nil:
			where = ", neither on the response of the call nor on the stream by GET"
		}
		p.failf("%s does not ask for %s within %s%s", w.o.name, method, p.limits.Prompt, where)
	case e.Message.IsResponse() && w.tag == "":
		p.skipf("%s does not ask for %s but answers: %.200s", w.o.name, method, e.Message.Raw)
	case e.Message.IsResponse():
		p.failf("%s does not ask for %s but answers: %.200s", w.o.name, method, e.Message.Raw)
	case w.request.x != nil && e.Stream != w.request.x.Stream && e.Stream != w.c.listening:
		p.failf("%s comes on %s, and not on the response of the call that it belongs to", method, e.Stream)
	}
	return e
}

func asksOnTheResponse(p *probe) {
	c := p.openListening()
	if c.listening == "" {
		p.skipf("the server has no stream by GET")
	}
	w := c.nested(kinds[0]).send()
	ask := w.asked(kinds[0].method, w.request.from)
	if ask.Stream == c.listening {
		p.failf("%s comes on the stream by GET, and not on the response of the call that it belongs to", kinds[0].method)
	}
}

// withdrawal tells whether m cancels the request with an id.
func withdrawal(m wire.Message, id json.RawMessage) bool {
	return m.Method == "notifications/cancelled" && m.ID == nil && wire.SameID(string(m.Param("requestId")), string(id))
}

// withdrawn cancels the call and waits for the cancel of what the server has asked for it.
func (w *work) withdrawn(method string, ask wire.Entry) wire.Entry {
	e, ok := w.withdraws(ask)
	if !ok {
		p := w.c.p
		p.failf("%s with the id %s is not cancelled within %s after its call was", method, ask.Message.ID, p.limits.Prompt)
	}
	return e
}

// withdraws is withdrawn for rules that are not about whether there is a cancel.
func (w *work) withdraws(ask wire.Entry) (wire.Entry, bool) {
	p := w.c.p
	since := p.log.Len()
	w.request.stop(stop)
	return p.wait(p.limits.Prompt, since, func(e wire.Entry) bool {
		return e.Kind == wire.Received && withdrawal(e.Message, ask.Message.ID)
	})
}

func reasonIsPassedOn(p *probe) {
	c := p.openListening()
	w := c.nested(kinds[0]).send()
	e, ok := w.withdraws(w.asked(kinds[0].method, w.request.from))
	if !ok {
		p.skipf("%s is not cancelled at all", kinds[0].method)
	}
	var reason string
	if json.Unmarshal(e.Message.Param("reason"), &reason) != nil || reason != stop {
		p.failf("the cancel of %s has the reason %.200s, and not that of the call, %q", kinds[0].method, e.Message.Param("reason"), stop)
	}
}

func nestedIsCancelled(p *probe, k kind) {
	c := p.openListening()
	w := c.nested(k).send()
	ask := w.asked(k.method, w.request.from)
	e := w.withdrawn(k.method, ask)
	if e.Stream != ask.Stream && ask.Stream != c.listening {
		p.failf("%s was sent on %s, its cancel on %s", k.method, ask.Stream, e.Stream)
	}
	if w.tag != "" {
		w.await("nested_error").cancelledBy(p, "peer", stop)
	}
}

// respond answers a request of the server.
func (c *client) respond(id json.RawMessage, result string) {
	c.deliver(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result), "", false)
}

func lateAnswer(p *probe) {
	c := p.openListening()
	w := c.nested(kinds[0]).send()
	ask := w.asked(kinds[0].method, w.request.from)
	w.request.stop(stop)
	w.await("nested_error")
	c.fence("after a cancelled call")
	since := p.log.Len()
	c.respond(ask.Message.ID, kinds[0].answer)
	c.fence("after an answer that came too late")
	p.sleep(p.limits.Quiet)
	for _, m := range c.received(since, func(m wire.Message) bool { return m.IsResponse() }) {
		p.failf("an answer that came too late is answered: %.200s", m.Raw)
	}
}

func sequenceStops(p *probe) {
	c := p.openListening()
	w := c.fixture("cancel_sequence", nil).send()
	first := w.asked(kinds[0].method, w.request.from)
	c.respond(first.Message.ID, kinds[0].answer)
	second := w.asked(kinds[0].method, first.Index+1)
	since := p.log.Len()
	w.request.stop(stop)
	w.await("nested_error")
	c.respond(second.Message.ID, kinds[0].answer)
	p.sleep(p.limits.Quiet)
	for _, m := range c.received(since, wire.Message.IsRequest) {
		p.failf("the server goes on to ask after the cancel: %.200s", m.Raw)
	}
	steps := 0
	for _, e := range w.events() {
		if e.Event == "step" {
			steps++
		}
	}
	if steps != 2 {
		p.failf("the handler takes %d steps, though it was cancelled during the second", steps)
	}
}

func capabilityIsRespected(p *probe) {
	c := p.openWith(p.version(), `{}`)
	w := c.nested(kinds[0]).send()
	e, ok := p.wait(p.limits.Prompt, w.request.from, func(e wire.Entry) bool {
		return e.Kind == wire.Received && e.Message.IsRequest() || w.request.isAnswer(e)
	})
	if ok && e.Message.IsRequest() {
		p.failf("a client without the capability is asked: %.200s", e.Message.Raw)
	}
	m := w.request.answer(p.limits.Prompt, "a call that needs sampling, for a client without it,")
	if !isToolError(m) {
		p.failf("a call that needs sampling succeeds for a client without it: %.200s", m.Raw)
	}
	for _, m := range c.received(w.request.from, wire.Message.IsRequest) {
		p.failf("a client without the capability is asked: %.200s", m.Raw)
	}
}
