package transporttest

import (
	"fmt"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: after a cancel there is silence.

const stop = "user pressed stop"

var silenceRules = []Rule{
	{
		Name: "answer-suppressed-result", Page: pageCancel, Level: Should, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "a cancelled call is not answered, though its handler returns a result",
		run:         func(p *probe) { c := p.open(); c.suppressed(c.slow()) },
	},
	{
		Name: "answer-suppressed-error", Page: pageCancel, Level: Should, Settings: notified, Needs: []Need{"cancel_error"},
		Explanation: "a cancelled call is not answered, though its handler returns an error of another kind",
		run:         func(p *probe) { c := p.open(); c.suppressed(c.fixture("cancel_error", nil)) },
	},
	{
		Name: "answer-suppressed-panic", Page: pageCancel, Level: Should, Settings: notified, Needs: []Need{"cancel_panic"},
		Explanation: "a cancelled call is not answered, though its handler panics, and the server lives on",
		run:         func(p *probe) { c := p.open(); c.suppressed(c.fixture("cancel_panic", nil)) },
	},
	{
		Name: "answer-suppressed-ignored", Page: pageCancel, Level: Should, Settings: notified, Needs: []Need{"cancel_ignore"},
		Explanation: "a cancelled call is not answered when its handler comes to its end without having looked",
		run:         ignoredIsSuppressed,
	},
	{
		Name: "silence-progress", Page: pageProgress, Level: Must, Settings: notified &^ JSONs, Needs: []Need{NeedReports},
		Explanation: "no progress is reported after a cancel, though the handler goes on to report it",
		run:         func(p *probe) { silenceOf(p, (*request).reports) },
	},
	{
		Name: "silence-log", Page: pageCancel, Level: Should, Settings: notified &^ JSONs, Needs: []Need{"cancel_ignore"},
		Explanation: "nothing is logged to the client for a call after its cancel, though the handler goes on to log",
		run: func(p *probe) {
			silenceOf(p, func(r *request, since int) int {
				return r.count(since, func(m wire.Message) bool { return m.Method == "notifications/message" })
			})
		},
	},
	{
		Name: "silence-burst", Page: pageCancel, Level: Should, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "of a hundred calls that are cancelled one after another none is answered, and on a stream none runs on",
		run:         burst,
	},
}

// suppressed cancels work and listens.
func (c *client) suppressed(w *work) {
	w.begin()
	since := c.p.log.Len()
	w.request.stop(stop)
	w.stopped()
	w.quiet(since, "the cancelled call")
	c.fence("after a cancelled call")
	w.request.silent(since, "the cancelled call")
}

func ignoredIsSuppressed(p *probe) {
	c := p.open()
	w := c.fixture("cancel_ignore", map[string]any{"ms": 600})
	w.begin()
	since := p.log.Len()
	w.request.stop(stop)
	w.awaitWithin(2*p.limits.Prompt, "returned")
	w.quiet(since, "the cancelled call")
}

// silenceOf cancels work that goes on to send something, and counts what comes after
// the cancel has been read. One message may have been on its way.
func silenceOf(p *probe, count func(*request, int) int) {
	c := p.open()
	var w *work
	if p.survey.fixtures() {
		w = c.fixture("cancel_ignore", map[string]any{"ms": 1500, "log": true})
		if p.setting.handshake() {
			set := option{method: "logging/setLevel", params: map[string]any{"level": "debug"}, control: true}
			c.send(set).answer(p.limits.Prompt, "logging/setLevel")
		} else {
			w.o.meta = map[string]any{metaLevel: "debug"}
		}
	} else {
		w = c.found(NeedSlow, p.survey.lasts)
	}
	w.o.report = true
	w.send()
	_, ok := p.wait(p.limits.Slow, w.request.from, func(wire.Entry) bool { return count(w.request, w.request.from) > 0 })
	if !ok {
		p.skipf("nothing is sent before the cancel either")
	}
	since := p.log.Len()
	w.request.stop(stop)
	known := c.fence("after a cancel")
	w.awaitWithin(3*p.limits.Prompt, "returned")
	w.wind(since)
	if n := count(w.request, known); n > 1 {
		p.failf("%d messages of the call come after its cancel was read", n)
	}
}

func burst(p *probe) {
	c := p.open()
	n := 100
	if !p.survey.fixtures() {
		n = 20
	}
	var all []*work
	for range n {
		w := c.slow().send()
		w.request.stop(stop)
		all = append(all, w)
	}
	c.fence("after a burst of cancels")
	last := all[n-1]
	last.quiet(last.request.from, "the last of the cancelled calls")
	for i, w := range all {
		w.request.silent(w.request.from, fmt.Sprintf("cancelled call number %d", i+1))
		if c.stream != nil { // over HTTP a cancel may have overtaken its call
			w.stoppedIfStarted()
		}
	}
}

// strayRules: cancels that are about nothing do nothing.
var strayRules = []Rule{
	{
		Name: "initialize-protected", Page: pageCancel, Level: Must, Settings: StreamHandshake | HTTPHandshake,
		Explanation: "initialize is answered though the client cancels it",
		run:         initializeIsProtected,
	},
	{
		Name: "unknown-cancel", Page: pageCancel, Level: Should, Settings: notified,
		Explanation: "a cancel for an id that was never used does nothing and is not answered",
		run: func(p *probe) {
			c := p.open()
			c.harmless(func() { c.cancel("987654", stop); c.cancel(`"never used"`, stop) })
		},
	},
	{
		Name: "late-cancel", Page: pageCancel, Level: Should, Settings: notified,
		Explanation: "a cancel for a request that was answered does nothing and is not answered",
		run: func(p *probe) {
			c := p.open()
			r := c.send(option{method: "tools/list"})
			r.answer(p.limits.Prompt, "tools/list")
			c.harmless(func() { c.cancel(r.id, stop) })
		},
	},
	{
		Name: "duplicate-cancel", Page: pageCancel, Level: Should, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "a second cancel does nothing, and the first one's reason stays",
		run:         duplicateCancel,
	},
	{
		Name: "malformed-cancel", Page: pageCancel, Level: Should, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "cancels that are malformed are not answered and touch nobody",
		run:         malformedCancels,
	},
	{
		Name: "cancel-accepted", Page: pageHTTP, Level: Must, Settings: HTTPHandshake | HTTPHandshakeJSON,
		Explanation: "a POSTed cancel is answered with status 202 and no body, whether there is something to cancel or not",
		run:         cancelIsAccepted,
	},
	{
		Name: "cancel-ignored", Page: pageHTTP, Level: Quality, Settings: HTTPStateless | HTTPStatelessJSON,
		Explanation: "a POSTed cancel, which has no meaning where the end of the response is the cancel, is answered with status 202 and no body",
		run:         cancelIsAccepted,
	},
	{
		Name: "cancel-with-id", Page: pageBasic, Level: Quality, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "notifications/cancelled sent with an id is a request: it is answered with an error and cancels nothing",
		run:         cancelWithID,
	},
}

// harmless does something that must have no effect.
func (c *client) harmless(something func()) {
	since := c.p.log.Len()
	something()
	c.fence("after a cancel that is about nothing")
	c.p.sleep(c.p.limits.Quiet)
	for _, m := range c.received(since, wire.Message.IsResponse) {
		c.p.failf("the notification is answered: %.200s", m.Raw)
	}
}

func initializeIsProtected(p *probe) {
	c := p.connect(p.version(), everyCapability)
	o := option{id: "1", method: "initialize", raw: c.initializeParams()}
	text := c.text(&o)
	r := c.newRequest(o)
	if c.stream != nil {
		c.write(false, text, cancelText("1", stop))
	} else {
		r.x = c.post(text, "initialize", "", false)
	}
	m := r.result(p.limits.Start, "initialize")
	c.greeted(r, m)
	if c.stream == nil {
		c.cancel("1", stop)
	}
	c.fence("after the cancel of initialize")
}

func duplicateCancel(p *probe) {
	c := p.open()
	w := c.slow().begin()
	since := p.log.Len()
	w.request.stop(stop)
	c.cancel(w.request.id, "another reason")
	w.stopped()
	c.cancel(w.request.id, "one more")
	c.fence("after several cancels")
	p.sleep(p.limits.Quiet)
	for _, m := range c.received(since, func(m wire.Message) bool { return m.IsResponse() && !m.IsAnswerTo(w.request.id) }) {
		p.failf("a cancel is answered: %.200s", m.Raw)
	}
	if w.tag == "" {
		return
	}
	if e, _ := w.has("observed"); e.Reason != stop && (e.Reason != "" || e.Origin != "") {
		p.failf("the reason is %q, and not the first one's, %q", e.Reason, stop)
	}
}

func malformedCancels(p *probe) {
	c := p.open()
	w := c.slow().begin()
	since := p.log.Len()
	for _, params := range []string{
		`{}`, `{"requestId":null}`, `{"requestId":true}`, `{"requestId":{"id":1}}`, `{"requestId":[1]}`,
		`{"reason":"no id"}`, `{"requestId":123456,"reason":7}`, `[]`, `["1"]`,
	} {
		c.notify("notifications/cancelled", params, false)
	}
	c.notify("notifications/cancelled", "", false)
	c.fence("after malformed cancels")
	for _, m := range c.received(since, func(m wire.Message) bool { return m.IsResponse() && m.ID != nil && string(m.ID) != "null" }) {
		p.failf("a notification is answered: %.200s", m.Raw)
	}
	if c.stream != nil {
		for _, m := range c.received(since, wire.Message.IsResponse) {
			p.failf("a notification is answered: %.200s", m.Raw)
		}
	}
	w.untouched("after cancels that do not name it")
	w.request.stop(stop)
	w.stopped()
}

func cancelIsAccepted(p *probe) {
	c := p.open()
	began := time.Now()
	x := c.cancel("987654", stop)
	switch status := x.Status(); {
	case x.Err() != nil:
		p.failf("the POST of a cancel fails: %v", x.Err())
	case status != 202:
		p.failf("the POST of a cancel is answered with status %d after %s", status, time.Since(began).Round(time.Millisecond))
	}
	if e, found := p.log.Find(0, func(e wire.Entry) bool {
		return e.Stream == x.Stream && (e.Kind == wire.Received || e.Kind == wire.Garbage)
	}); found {
		p.failf("the POST of a cancel is answered with a body: %s", e)
	}
}

func cancelWithID(p *probe) {
	c := p.open()
	w := c.slow().begin()
	r := c.send(option{method: "notifications/cancelled", params: map[string]any{"requestId": rawJSON(w.request.id), "reason": stop}})
	e, ok := r.answered(p.limits.Prompt)
	if !ok && r.x != nil && r.x.Status() >= 400 {
		w.untouched("by a request that only looks like a cancel")
		return // refused in the words of HTTP
	}
	if !ok {
		p.failf("notifications/cancelled with an id is not answered within %s", p.limits.Prompt)
	}
	m := e.Message
	if m.Error == nil {
		p.failf("notifications/cancelled with an id is answered with a result: %.200s", m.Raw)
	}
	w.untouched("by a request that only looks like a cancel")
	if code := strings.TrimSpace(m.Error.Code.String()); code != "-32601" {
		p.failf("notifications/cancelled with an id is answered with code %s, and not -32601: there is no such method", code)
	}
}
