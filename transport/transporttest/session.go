package transporttest

import "net/http"

// The rules of this file: a session that ends takes its calls with it.

var sessionRules = []Rule{
	{
		Name: "session-delete", Page: pageTransport, Level: Quality, Settings: HTTPHandshake | HTTPHandshakeJSON, Needs: []Need{NeedSlow},
		Explanation: "DELETE of a session with a running call is answered at once; the call is cancelled and its response ends",
		run:         sessionIsDeleted,
	},
	{
		Name: "session-gone", Page: pageTransport, Level: Must, Settings: HTTPHandshake | HTTPHandshakeJSON,
		Explanation: "after DELETE of a session its id is answered with status 404",
		run: func(p *probe) {
			c := p.open()
			if !c.deleted() {
				p.skipf("the server does not let clients end their sessions")
			}
			x := c.post([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), "tools/list", "", false)
			if !p.closedWithin(p.limits.Prompt, x.Done()) {
				x.Drop()
				p.failf("a request in a session that has ended is not answered within %s", p.limits.Prompt)
			}
			if x.Status() != http.StatusNotFound {
				p.failf("a request in a session that has ended is answered with status %d", x.Status())
			}
		},
	},
}

// deleted ends the session. It reports false when the server does not do that.
func (c *client) deleted() bool {
	x := c.http.Do(http.MethodDelete, c.headers("", ""), nil)
	if !c.p.closedWithin(c.p.limits.Prompt, x.Done()) {
		x.Drop()
		c.p.failf("DELETE is not answered within %s", c.p.limits.Prompt)
	}
	switch status := x.Status(); {
	case status == http.StatusMethodNotAllowed:
		return false
	case status < 200 || status > 299:
		c.p.failf("DELETE is answered with status %d", status)
	}
	return true
}

func sessionIsDeleted(p *probe) {
	c := p.open()
	witness := c.sibling()
	w := c.slow().begin()
	if !c.deleted() {
		p.skipf("the server does not let clients end their sessions")
	}
	c.session = ""
	if limit := w.soon(); !w.closedSoon(w.request.x.Done()) {
		p.failf("the response of a call is still open %s after its session has ended", limit)
	}
	w.c = witness
	if w.tag != "" {
		if e := w.await("observed"); !e.by("session_end") {
			p.failf("the call is cancelled by %q, and not by the end of its session", e.Origin)
		}
	}
}
