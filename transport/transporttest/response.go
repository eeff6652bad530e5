package transporttest

import (
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: what happens to the HTTP response of a call.

var responseRules = []Rule{
	{
		Name: "response-ends", Page: pageCancel, Level: Quality, Settings: HTTPHandshake | HTTPHandshakeJSON, Needs: []Need{NeedSlow},
		Explanation: "the response of a cancelled call ends at once, even while its handler runs on",
		run:         responseEnds,
	},
	{
		Name: "response-begins", Page: pageHTTP, Level: Quality, Settings: HTTPHandshake | HTTPStateless, Needs: []Need{NeedSlow},
		Explanation: "a call that says nothing has its response headers within a second, so that a client can drop it",
		run:         responseBegins,
	},
}

func responseEnds(p *probe) {
	c := p.open()
	w := c.slow()
	if w.tag != "" {
		w = c.fixture("cancel_ignore", map[string]any{"ms": 2 * p.limits.Prompt.Milliseconds()})
		w.lasts = 2 * p.limits.Prompt
	}
	w.begin()
	w.request.stop(stop)
	if limit := w.soon(); !w.closedSoon(w.request.x.Done()) {
		p.failf("the response of a cancelled call is still open after %s", limit)
	}
	if err := w.request.x.Err(); err != nil {
		p.failf("the response of a cancelled call breaks off: %v", err)
	}
	c.fence("after a cancelled call")
}

func responseBegins(p *probe) {
	c := p.open()
	w := c.slow()
	// A second is what clients can expect; a loaded machine is given more, where the
	// work lasts that long.
	limit, wait := p.limits.Prompt, p.wait
	if w.tag == "" {
		wait = p.listen
		if limit = w.lasts * 3 / 4; limit < time.Second {
			p.skipf("the slow tool takes only %s", w.lasts.Round(time.Millisecond))
		}
	}
	w.send()
	opened := func(e wire.Entry) bool { return e.Kind == wire.Opened && w.request.mine(e) }
	if _, ok := wait(limit, w.request.from, opened); !ok {
		p.failf("a call that says nothing has no response headers after %s", limit)
	}
}
