package transporttest

import (
	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: batches, which one revision has.

var batchRules = []Rule{
	{
		Name: "batch-member-cancelled", Page: "basic (2025-03-26)", Level: Must, Settings: StreamHandshake | HTTPHandshake, Needs: []Need{NeedSlow},
		Explanation: "a request of a batch can be cancelled, and only the others are answered",
		run:         batchMemberIsCancelled,
	},
	{
		Name: "batch-refused", Page: pageBasic, Level: Quality, Settings: StreamHandshake | StreamStateless,
		Explanation: "a batch in a revision without batches is refused, and the stream lives on",
		run: func(p *probe) {
			c := p.open()
			c.write(false, []byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`))
			c.fence("after a batch")
		},
	},
}

func batchMemberIsCancelled(p *probe) {
	c := p.openWith(revisionOfBatch, everyCapability)
	if c.version != revisionOfBatch {
		p.skipf("the server does not speak revision %s", revisionOfBatch)
	}
	w := c.slow()
	slow := c.text(&w.o)
	quick := option{method: "tools/list"}
	other := c.text(&quick)
	w.request, quick.control = c.newRequest(w.o), false
	rest := c.newRequest(quick)
	batch := append(append(append(append([]byte{'['}, slow...), ','), other...), ']')
	if c.stream != nil {
		c.write(false, batch)
	} else {
		w.request.x = c.post(batch, "", "", false)
		p.onClean(w.request.x.Drop)
		rest.x = w.request.x
	}
	if w.tag != "" {
		w.await("started")
	} else {
		p.sleep(min(w.lasts/5, p.limits.Quiet))
	}
	since := p.log.Len()
	c.cancel(w.request.id, stop)
	w.stopped()
	answers := func(e wire.Entry, id string) bool {
		if e.Kind != wire.Received {
			return false
		}
		for _, m := range e.Message.Each() {
			if m.IsAnswerTo(id) {
				return true
			}
		}
		return false
	}
	if _, ok := p.wait(p.limits.Prompt, w.request.from, func(e wire.Entry) bool { return answers(e, rest.id) }); !ok {
		p.failf("the other request of the batch is not answered within %s after the cancel", p.limits.Prompt)
	}
	w.quiet(since, "the cancelled request of a batch")
	if e, found := p.log.Find(w.request.from, func(e wire.Entry) bool { return answers(e, w.request.id) }); found {
		p.failf("the cancelled request of a batch is answered: %.200s", e.Message.Raw)
	}
}
