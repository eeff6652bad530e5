package transporttest

import (
	"net/http"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: what a dropped response means.

var disconnectRules = []Rule{
	{
		Name: "disconnect-cancels", Page: pageHTTP, Level: Must, Settings: HTTPStateless | HTTPStatelessJSON, Needs: []Need{"cancel_wait"},
		Explanation: "a client that closes the response cancels the call, in whatever form it would be answered",
		run: func(p *probe) {
			c := p.open()
			w := c.slow().begin()
			w.request.stop("")
			if e := w.await("observed"); !e.by("disconnect") {
				p.failf("the call is cancelled by %q, and not by the disconnect", e.Origin)
			}
			c.fence("after a dropped call")
		},
	},
	{
		Name: "disconnect-survives", Page: pageTransport, Level: Should, Settings: HTTPHandshake | HTTPHandshakeJSON, Needs: []Need{"cancel_wait"},
		Explanation: "a client that loses the response of a call in a session has not cancelled it",
		run: func(p *probe) {
			c := p.open()
			w := c.fixture("cancel_wait", map[string]any{"ms": 800}).begin()
			w.request.x.Drop()
			w.awaitWithin(2*p.limits.Prompt, "elapsed")
			if e, found := w.has("observed"); found {
				p.failf("the call is cancelled by the loss of its response: %s %q", e.Origin, e.Reason)
			}
		},
	},
	{
		Name: "disconnect-cancellable", Page: pageTransport, Level: Quality, Settings: HTTPHandshake | HTTPHandshakeJSON, Needs: []Need{"cancel_wait"},
		Explanation: "a call whose response was lost can still be cancelled",
		run: func(p *probe) {
			c := p.open()
			w := c.slow().begin()
			w.request.x.Drop()
			p.closedWithin(p.limits.Prompt, w.request.x.Done())
			w.request.stop(stop)
			if e := w.await("observed"); !e.by("peer") {
				p.failf("the call is cancelled by %q, and not by the peer", e.Origin)
			}
		},
	},
	{
		Name: "resume", Page: pageTransport, Level: May, Settings: HTTPHandshake, Needs: []Need{NeedSlow},
		Explanation: "a client that lost a response resumes it with Last-Event-ID and gets the answer",
		run:         resume,
	},
	{
		Name: "resume-cancelled", Page: pageTransport, Level: Quality, Settings: HTTPHandshake, Needs: []Need{NeedSlow},
		Explanation: "a client that resumes the response of a cancelled call is told that nothing follows, at once",
		run:         resumeCancelled,
	},
}

// identified waits until the request's response has an event id to resume from.
func (r *request) identified() string {
	p := r.c.p
	p.wait(2*p.limits.Prompt, r.from, func(e wire.Entry) bool {
		return r.mine(e) && (r.x.EventID() != "" || e.EventID != "" || e.Kind == wire.Closed)
	})
	// An event without data is no entry, but follows the headers at once.
	for limit := p.within(p.limits.Prompt); r.x.EventID() == "" && !limit.passed(); {
		if p.closes(10*time.Millisecond, r.x.Done()) {
			break
		}
	}
	return r.x.EventID()
}

// resumeFrom goes on with a response by its last event's id.
func (r *request) resumeFrom(id string) *wire.Exchange {
	h := r.c.headers("", "")
	h["Accept"] = []string{acceptStream}
	h["Last-Event-ID"] = []string{id}
	x := r.c.http.Do(http.MethodGet, h, nil)
	r.c.p.onClean(x.Drop)
	r.also = append(r.also, x)
	return x
}

func resume(p *probe) {
	c := p.open()
	w := c.slow()
	if w.tag != "" {
		w = c.fixture("cancel_wait", map[string]any{"ms": 1500})
	}
	w.send()
	id := w.request.identified()
	if id == "" {
		p.skipf("the response carries no event id, so that it cannot be resumed")
	}
	w.request.x.Drop()
	p.closedWithin(p.limits.Prompt, w.request.x.Done())
	x := w.request.resumeFrom(id)
	e, ok := w.request.answered(2*p.limits.Prompt + w.lasts)
	if !ok {
		p.failf("the resumed response brings no answer (HTTP status %d)", x.Status())
	}
	if e.Message.Error != nil {
		p.failf("the resumed response brings an error: %.200s", e.Message.Raw)
	}
}

func resumeCancelled(p *probe) {
	c := p.open()
	w := c.slow().begin()
	id := w.request.identified()
	if id == "" {
		p.skipf("the response carries no event id, so that it cannot be resumed")
	}
	w.request.x.Drop()
	p.closedWithin(p.limits.Prompt, w.request.x.Done())
	w.request.stop(stop)
	if w.tag != "" {
		w.stopped()
	}
	x := w.request.resumeFrom(id)
	if limit := w.soon(); !w.closedSoon(x.Done()) {
		p.failf("the resumed response of a cancelled call is still open after %s", limit)
	}
}
