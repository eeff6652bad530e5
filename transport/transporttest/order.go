package transporttest

import (
	"fmt"
	"strconv"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: requests and cancels take effect in their order.

var orderRules = []Rule{
	{
		Name: "cancel-first", Page: pageCancel, Level: Should, Settings: Streams,
		Explanation: "a request that follows a cancel for its id is served: the cancel was about nothing",
		run:         cancelFirst,
	},
	{
		Name: "cancel-overtakes", Page: pageCancel, Level: Quality, Settings: HTTPHandshake | HTTPHandshakeJSON, Needs: []Need{NeedSlow},
		Explanation: "a cancel that arrives ahead of its request, as it can over HTTP, is remembered: the request is not answered",
		run:         cancelOvertakes,
	},
	{
		Name: "one-write", Page: pageCancel, Level: Should, Settings: Streams, Needs: []Need{NeedSlow},
		Explanation: "a call and its cancel that arrive together are not answered, two hundred times, and nothing runs on",
		run:         oneWrite,
	},
	{
		Name: "progress-order", Page: pageProgress, Level: Must, Settings: All &^ JSONs, Needs: []Need{NeedProgress},
		Explanation: "all progress of a call arrives, in order and before its answer",
		run:         progressInOrder,
	},
}

func cancelFirst(p *probe) {
	c := p.open()
	for i := range 50 {
		id := strconv.Itoa(1000 + i)
		o := option{id: id, method: "tools/list"}
		text := c.text(&o)
		r := c.newRequest(o)
		c.write(false, cancelText(id, stop), text)
		r.result(p.limits.Prompt, "a request that follows a cancel for its id")
	}
}

func cancelOvertakes(p *probe) {
	c := p.open()
	const id = "4711"
	c.cancel(id, stop)
	w := c.slow().withID(id).send()
	if limit := w.soon(); !w.closedSoon(w.request.x.Done()) {
		p.failf("the call runs on %s after its cancel, which came first", limit)
	}
	c.fence("after a cancel that came first")
}

func oneWrite(p *probe) {
	c := p.open()
	n := 200
	if !p.survey.fixtures() {
		n = 20
	}
	since := p.log.Len()
	var all []*work
	for range n {
		w := c.slow()
		text := c.text(&w.o)
		w.request = c.newRequest(w.o)
		c.write(false, text, cancelText(w.o.id, stop))
		all = append(all, w)
	}
	c.fence("after calls that came together with their cancels")
	last := all[n-1]
	last.quiet(since, "a call that came together with its cancel")
	for i, w := range all {
		w.request.silent(since, fmt.Sprintf("call number %d, which came together with its cancel,", i+1))
		w.stoppedIfStarted()
	}
}

func progressInOrder(p *probe) {
	c := p.open()
	o, n := call("echo", map[string]any{"text": "hello", "progress": 50}), 50
	if !p.survey.fixtures() {
		tool := p.survey.calls[NeedProgress]
		if n = stepsOf(tool.Arguments); n == 0 {
			p.skipf("%s cannot be told how often to report", tool.Tool)
		}
		o = call(tool.Tool, tool.Arguments)
	}
	o.report = true
	for range 10 {
		o.id = ""
		c.progressOf(o, n)
	}
}

// progressOf makes a call and looks at its progress.
func (c *client) progressOf(o option, n int) {
	p := c.p
	r := c.send(o)
	r.result(2*p.limits.Prompt, o.name)
	var last float64
	count := 0
	for _, e := range p.log.Since(r.from) {
		if !r.isMessage(e) {
			continue
		}
		if e.Kind == wire.Received && e.Message.IsAnswerTo(r.id) {
			break
		}
		value, err := strconv.ParseFloat(string(e.Message.Param("progress")), 64)
		if err != nil || value <= last {
			p.failf("progress %s follows %v", e.Message.Param("progress"), last)
		}
		last = value
		count++
	}
	if count != n {
		p.failf("%d of %d progress reports arrive before the answer", count, n)
	}
	c.fence("after some progress")
	if late := r.reports(r.from) - n; late > 0 {
		p.failf("%d progress reports arrive after the answer", late)
	}
}
