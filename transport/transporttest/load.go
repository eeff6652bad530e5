package transporttest

import (
	"fmt"
	"time"
)

// The rules of this file: many calls at once.

var loadRules = []Rule{
	{
		Name: "flood", Page: pageCancel, Level: Quality, Settings: notified &^ JSONs, Needs: []Need{NeedSlow},
		Explanation: "with three hundred calls in flight a request is answered at once and the first call can be cancelled",
		run:         flood,
	},
	{
		Name: "steady", Level: Quality, Settings: All, Needs: []Need{"cancel_stats"}, Alone: true,
		Explanation: "after two hundred cancelled calls nothing of them is left: no request, no handler, no goroutine",
		run:         steady,
	},
}

func flood(p *probe) {
	c := p.open()
	const n = 300
	var all []*work
	for range n {
		all = append(all, c.slow())
	}
	c.sendAll(all)
	c.fence(fmt.Sprintf("with %d calls in flight", n))
	first := all[0]
	first.await("started")
	since := p.log.Len()
	first.request.stop(stop)
	if first.tag != "" {
		first.stopped()
	}
	if limit := first.soon(); first.request.x != nil && !first.closedSoon(first.request.x.Done()) {
		p.failf("the response of a cancelled call is still open after %s", limit)
	}
	c.fence("after the cancel of the first")
	if _, answered := p.log.Find(since, all[n-1].request.isAnswer); answered && first.tag != "" {
		p.failf("the last call is answered, though only the first was cancelled")
	}
}

// sendAll sends calls, all at once where that is possible.
func (c *client) sendAll(all []*work) {
	if c.stream == nil {
		for _, w := range all {
			w.send()
		}
		return
	}
	var lines [][]byte
	for _, w := range all {
		lines = append(lines, c.text(&w.o))
		w.request = c.newRequest(w.o)
	}
	sent := make(chan struct{})
	go func() { // the server may not read as long as its handlers are busy
		defer close(sent)
		_ = c.stream.Send(lines...) // the log says when it fails
	}()
	if !c.p.closedWithin(2*c.p.limits.Prompt, sent) {
		c.p.failf("the server does not read %d calls within %s", len(all), 2*c.p.limits.Prompt)
	}
}

// figures are what cancel_stats says.
type figures struct {
	Goroutines int `json:"goroutines"`
	InFlight   int `json:"in_flight"`
	Lingering  int `json:"lingering"`
	Parked     int `json:"parked"`
}

func (c *client) figures() figures {
	o := call("cancel_stats", map[string]any{})
	o.control = true
	m := c.send(o).result(c.p.limits.Prompt, "cancel_stats")
	var f figures
	c.structured(m, "cancel_stats", &f)
	return f
}

// slack is how many goroutines may be there for other reasons: connections that are
// kept, timers that are about to fire.
const slack = 20

func steady(p *probe) {
	c := p.open()
	c.cancelledCalls(20) // so that connections are open that are kept
	before := c.settled(func(f figures) bool { return f.InFlight == 0 && f.Lingering == 0 })
	for range 10 {
		c.cancelledCalls(20)
	}
	after := c.settled(func(f figures) bool {
		return f.InFlight == 0 && f.Lingering == 0 && f.Parked <= before.Parked && f.Goroutines <= before.Goroutines+slack
	})
	switch {
	case after.InFlight > 0 || after.Lingering > 0 || after.Parked > before.Parked:
		p.failf("of two hundred cancelled calls %d are in flight, %d linger and %d are parked", after.InFlight, after.Lingering, after.Parked-before.Parked)
	case after.Goroutines > before.Goroutines+slack:
		p.failf("there were %d goroutines before two hundred cancelled calls, and are %d after", before.Goroutines, after.Goroutines)
	}
}

// cancelledCalls makes calls and cancels them.
func (c *client) cancelledCalls(n int) {
	var all []*work
	for range n {
		all = append(all, c.slow().send())
	}
	all[n-1].await("started")
	for _, w := range all {
		w.request.stop(stop)
	}
	c.fence("after some cancelled calls")
}

// settled waits until figures are as wanted, and returns the last.
func (c *client) settled(wanted func(figures) bool) figures {
	for limit := c.p.within(3 * c.p.limits.Prompt); ; {
		f := c.figures()
		if wanted(f) || limit.passed() {
			return f
		}
		c.p.sleep(20 * time.Millisecond)
	}
}
