package transporttest

import (
	"encoding/json"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: a cancel reaches the request with that very id.

func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }

const large = "9007199254740993" // 2^53+1: the first whole number that a double cannot hold

var idRules = []Rule{
	idRule("id-number", "70001", "a number"),
	idRule("id-string", `"call-7"`, "a string"),
	idRule("id-zero", "0", "0"),
	idRule("id-empty", `""`, "the empty string"),
	idRule("id-negative", "-3", "a negative number"),
	{
		Name: "id-large", Page: pageBasic, Level: Must, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "a request with the id 2^53+1 is cancelled by that id, and not by its neighbour 2^53",
		run:         func(p *probe) { neighbours(p, large, "9007199254740992") },
	},
	{
		Name: "id-fraction", Page: pageBasic, Level: Must, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "a request with the id 3 is not cancelled by a cancel for 3.7",
		run:         func(p *probe) { neighbours(p, "3", "3.7") },
	},
	{
		Name: "id-kind", Page: pageBasic, Level: Must, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: `7 and "7" are two ids: a cancel for the one leaves the other alone`,
		run:         kindsOfID,
	},
	{
		Name: "id-echo", Page: pageBasic, Level: Must, Settings: All,
		Explanation: `an answer carries the very id of its request, be it 2^53+1, 0 or ""`,
		run:         idsAreEchoed,
	},
	{
		Name: "id-reuse", Page: pageCancel, Level: Quality, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "the id of a cancelled request is free: a request that uses it again is answered",
		run:         idIsReused,
	},
	{
		Name: "id-duplicate", Page: pageBasic, Level: Quality, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "a request with the id of one in flight is refused, and the first can still be cancelled",
		run:         idIsDuplicate,
	},
}

func idRule(name, id, what string) Rule {
	return Rule{
		Name: name, Page: pageBasic, Level: Must, Settings: notified, Needs: []Need{NeedSlow},
		Explanation: "a request whose id is " + what + " can be cancelled",
		run: func(p *probe) {
			c := p.open()
			w := c.slow().withID(id).begin()
			w.request.stop(stop)
			w.stopped()
		},
	}
}

func neighbours(p *probe, own, other string) {
	c := p.open()
	w := c.slow().withID(own).begin()
	c.cancel(other, stop)
	c.fence("after a cancel")
	p.sleep(p.limits.Quiet)
	w.untouched("by a cancel for " + other)
	for _, m := range c.received(w.request.from, func(m wire.Message) bool { return m.IsAnswerTo(other) }) {
		p.failf("the request with the id %s is answered under another: %.200s", own, m.Raw)
	}
	w.request.stop(stop)
	w.stopped()
}

func kindsOfID(p *probe) {
	c := p.open()
	number := c.slow().withID("7").begin()
	text := c.slow().withID(`"7"`).begin()
	text.request.stop(stop)
	if text.tag != "" {
		text.stopped() // of another tool it is only known when the first would be over as well
	}
	c.fence("after a cancel")
	p.sleep(p.limits.Quiet)
	number.untouched(`by a cancel for "7"`)
	number.request.stop(stop)
	number.stopped()
	text.stopped()
}

func idsAreEchoed(p *probe) {
	c := p.open()
	for _, id := range []string{large, "0", `""`, "-3", `"7"`, "7", `"a\"b\u00e9"`} {
		r := c.send(option{id: id, method: "tools/list"})
		e, ok := p.wait(p.limits.Prompt, r.from, func(e wire.Entry) bool {
			return e.Kind == wire.Received && e.Message.IsResponse() || e.Kind == wire.Closed
		})
		if ok && e.Message.IsResponse() && !e.Message.IsAnswerTo(id) {
			p.failf("a request with the id %s is answered under the id %s", id, e.Message.ID)
		}
		r.answer(p.limits.Prompt, "tools/list with the id "+id)
	}
}

func idIsReused(p *probe) {
	c := p.open()
	const id = "42"
	w := c.slow().withID(id).begin()
	w.request.stop(stop)
	w.stopped()
	c.fence("after a cancelled call")
	for range 3 {
		again := c.send(option{id: id, method: "tools/list"})
		m := again.answer(p.limits.Prompt, "a request with the id of one that was cancelled")
		if m.Error != nil {
			p.failf("a request with the id of one that was cancelled is refused: %.200s", m.Raw)
		}
	}
}

func idIsDuplicate(p *probe) {
	c := p.open()
	w := c.slow().withID("42").begin()
	second := c.send(option{id: "42", method: "tools/list"})
	e, ok := second.answered(p.limits.Prompt)
	switch {
	case !ok && second.x != nil && second.x.Status() >= 400: // refused in the words of HTTP
	case !ok:
		p.failf("a request with the id of one in flight is not refused")
	case e.Message.Error == nil:
		p.failf("a request with the id of one in flight is not refused; what comes under that id is %.200s", e.Message.Raw)
	}
	if w.tag != "" {
		if e, found := w.has("observed"); found {
			p.failf("the first request is cancelled by a second one with its id: %s", e.Origin)
		}
	}
	w.request.stop(stop)
	if w.tag != "" {
		w.stopped()
	}
	c.fence("after a duplicate id")
}
