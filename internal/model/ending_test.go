package model_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/heedmcp/heed/internal/model"
)

// finish brings everything to its end, after which nothing may be left.
func (w *world) finish(drains bool, goroutines int) {
	if drains && !w.failed() {
		w.drain()
	}
	for _, d := range []time.Duration{parkTimeout + grace + time.Second, 0} {
		for round := 0; round < 100 && !w.failed() && w.bringOn(); round++ {
			w.settle()
		}
		w.advance(d)
	}
	if !w.failed() {
		for _, r := range w.requests {
			if !r.refused && r.life.Phase != model.Returned {
				w.fail("tag %d is never over: %+v", r.tag, r.life)
			}
		}
	}
	w.client.CloseIdleConnections()
	time.Sleep(time.Minute) // nothing comes late
	w.settle()
	if !w.failed() {
		w.nothingIsLeft(goroutines)
	}
}

// bringOn answers what is asked and lets handlers return. It reports whether there was something.
func (w *world) bringOn() bool {
	var asked []*question
	var left []*request
	w.mu.Lock()
	for _, q := range w.questions {
		if q.open && q.of.life.Asking && slices.Contains(w.peers, q.peer) {
			asked = append(asked, q)
		}
	}
	for _, r := range w.requests {
		if r.work != nil && r.work.of == r && !r.work.done && !r.work.asking {
			left = append(left, r)
		}
	}
	w.mu.Unlock()
	for _, q := range asked {
		w.answer(q.peer, q.id)
	}
	for _, r := range left {
		w.order(r, orderValue)
	}
	if len(asked)+len(left) > 0 {
		return true
	}
	for i, p := range w.peers {
		// A question that was lost with its stream is answered by nobody.
		if p.kind == httpSession && slices.ContainsFunc(w.requests, func(r *request) bool { return r.peer == p && r.life.Asking }) {
			w.end(i)
			return true
		}
	}
	return false
}

// nothingIsLeft looks for goroutines, and for anything that holds a request: a map, a timer, a list.
func (w *world) nothingIsLeft(goroutines int) {
	if n, stacks := goroutinesOfBubble(); n > goroutines {
		w.fail("%d goroutines are left of %d\n%s", n, goroutines, stacks)
		return
	}
	for range 2 { // pools keep things for one
		runtime.GC()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.workers {
		if k.held.Value() != nil {
			w.failLocked("something holds on to the request of tag %d", k.tag)
		}
	}
}

// goroutinesOfBubble counts the goroutines of the bubble, of which there is one at a time, and
// leaves out whatever the test's own process is up to.
func goroutinesOfBubble() (int, string) {
	stacks := make([]byte, 1<<20)
	all := string(stacks[:runtime.Stack(stacks, true)])
	n := 0
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, "goroutine ") && strings.Contains(line, "synctest bubble") {
			n++
		}
	}
	return n, all
}

// close ends server and clients.
func (w *world) close() {
	close(w.closing)
	for _, p := range w.peers {
		if !p.kind.http() {
			p.in.Close()
		}
	}
	_ = w.h.Close()
	w.client.CloseIdleConnections()
	_ = w.web.Close()
}

// report is what a failure prints.
func (w *world) report(s script) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nslots %d, drains %v, steps:", w.err, s.Slots, s.Drains)
	for i, step := range s.Steps {
		fmt.Fprintf(&b, "\n  %d %v", i+1, step)
	}
	b.WriteString("\nthe wire:\n  ")
	b.WriteString(strings.Join(w.lines, "\n  "))
	return b.String()
}

func (w *world) drain() {
	w.log("the server drains")
	for _, r := range w.requests {
		if !r.refused {
			r.events = append(r.events, cancelBy(model.Shutdown))
		}
	}
	w.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = w.s.Drain(ctx) // handlers that are left are not its fault
	})
	w.settle()
}

func cancelBy(c model.Cause) model.Event { return model.Event{Kind: model.Cancel, Cause: c} }
