package transporttest

import (
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// The rules of this file: how a service ends.

var lifeRules = []Rule{
	{
		Name: "eof-idle", Page: pageTransport, Level: Should, Settings: Streams, Needs: []Need{NeedEnd},
		Explanation: "the end of the input ends an idle server at once",
		run: func(p *probe) {
			c := p.open()
			c.eof()
			c.ends(p.limits.Prompt)
		},
	},
	{
		Name: "eof-running", Page: pageTransport, Level: Should, Settings: Streams, Needs: []Need{NeedEnd, NeedSlow},
		Explanation: "the end of the input cancels what is running and ends the server, cleanly and in time",
		run: func(p *probe) {
			c := p.open()
			c.slow().begin()
			c.eof()
			c.ends(p.limits.Exit)
		},
	},
	{
		Name: "eof-ignored", Level: Quality, Settings: Streams, Needs: []Need{NeedEnd, "cancel_ignore"},
		Explanation: "the end of the input ends the server in time, whatever handlers do",
		run: func(p *probe) {
			c := p.open()
			c.fixture("cancel_ignore", map[string]any{"ms": 2 * wire.MostSlowness * p.limits.Exit.Milliseconds()}).begin()
			c.eof()
			if !p.closedWithin(p.limits.Exit, c.life.Ended) {
				p.failf("the server has not ended %s after its input", p.limits.Exit)
			}
		},
	},
	{
		Name: "eof-after-cancel", Page: pageTransport, Level: Should, Settings: Streams, Needs: []Need{NeedEnd, NeedSlow},
		Explanation: "a cancel directly followed by the end of the input ends the server cleanly, with no partial line",
		run: func(p *probe) {
			c := p.open()
			w := c.slow().begin()
			w.request.stop(stop)
			c.eof()
			c.ends(p.limits.Exit)
		},
	},
	{
		Name: "shutdown-running", Page: pageTransport, Level: Should, Settings: All, Needs: []Need{NeedEnd, NeedShutdown, NeedSlow},
		Explanation: "a server that is asked to shut down ends in time though a call is running, with no partial message",
		run: func(p *probe) {
			c := p.open()
			c.slow().begin()
			c.shutDown()
			c.endsAnyhow(p.shutdownLimit())
		},
	},
	{
		Name: "shutdown-grace", Level: Quality, Settings: All, Needs: []Need{NeedEnd, NeedShutdown, "cancel_wait"},
		Explanation: "a call that comes to its end soon after the server is asked to shut down is answered",
		run: func(p *probe) {
			c := p.open()
			w := c.fixture("cancel_wait", map[string]any{"ms": 500}).begin()
			c.shutDown()
			if m := w.request.answer(p.shutdownLimit(), "a call that was running"); isToolError(m) {
				p.failf("the call fails: %.200s", m.Raw)
			}
			c.endsAnyhow(p.shutdownLimit())
		},
	},
	{
		Name: "shutdown-answers", Level: Quality, Settings: All, Needs: []Need{NeedEnd, NeedShutdown, "cancel_wait"},
		Explanation: "a call that the shutdown cancels is answered: its client has not cancelled it",
		run: func(p *probe) {
			c := p.open()
			w := c.slow().begin()
			c.shutDown()
			w.request.answer(p.shutdownLimit(), "a call that the shutdown has cancelled")
			c.endsAnyhow(p.shutdownLimit())
		},
	},
	{
		Name: "no-stray-output", Page: pageTransport, Level: Must, Settings: Streams,
		Explanation: "nothing but whole messages, one a line, is on the stream, from the first byte to the last",
		run:         noStrayOutput,
	},
}

// shutdownLimit is the limit for a shutdown. Servers over HTTP have many clients, and
// give what is running several times as long.
func (p *probe) shutdownLimit() time.Duration {
	if p.setting.stream() {
		return p.limits.Exit
	}
	return 3 * p.limits.Exit
}

func (c *client) eof() {
	if err := c.stream.CloseInput(); err != nil {
		c.p.errorf("the server's input cannot be closed: %v", err)
	}
}

func (c *client) shutDown() {
	c.p.log.Notef("the server is asked to shut down")
	if err := c.life.Shutdown(); err != nil {
		c.p.errorf("the server cannot be asked to shut down: %v", err)
	}
}

// ends waits for the end of the service, which must be clean.
func (c *client) ends(d time.Duration) {
	c.endsAnyhow(d)
	if c.life.Result == nil {
		return
	}
	if clean, text := c.life.Result(); !clean {
		c.p.failf("the server does not end cleanly: %s", text)
	}
}

// endsAnyhow waits for the end of the service, however that is.
func (c *client) endsAnyhow(d time.Duration) {
	began := time.Now()
	if !c.p.closedWithin(d, c.life.Ended) {
		c.p.failf("the server has not ended %s after it should", d)
	}
	c.p.log.Notef("the server has ended after %s", time.Since(began).Round(time.Millisecond))
	if c.stream == nil {
		return
	}
	if !c.p.closedWithin(c.p.limits.Prompt, c.stream.Ended()) {
		c.p.failf("the server has ended, but its output is held open")
	}
	c.clean()
}

// clean fails the rule when something on the stream was no message.
func (c *client) clean() {
	if e, found := c.p.log.Find(0, func(e wire.Entry) bool { return e.Kind == wire.Garbage && e.Stream == wire.StreamName }); found {
		c.p.failf("what is no message stands on the stream: %.200q", e.Text)
	}
}

func noStrayOutput(p *probe) {
	c := p.open()
	r := c.send(option{method: "heedcheck/unknown"})
	r.answer(p.limits.Prompt, "an unknown method")
	c.send(option{method: "tools/list"}).answer(p.limits.Prompt, "tools/list")
	if p.survey.missing(NeedSlow) == "" {
		w := c.slow().begin()
		w.request.stop(stop)
		w.stopped()
	}
	if p.survey.missing("cancel_error") == "" {
		w := c.fixture("cancel_error", nil).begin()
		w.request.stop(stop)
		w.stopped()
	}
	c.fence("after all this")
	p.sleep(p.limits.Quiet)
	c.clean()
	if p.survey.missing("cancel_panic") == "" {
		w := c.fixture("cancel_panic", nil).begin()
		w.request.stop(stop)
		p.closes(p.limits.Quiet, c.stream.Ended()) // whether that brings it down is another rule's matter
		c.clean()
	}
	if c.life.Ended != nil {
		_ = c.stream.CloseInput() // a server that is down has none
		if p.closedWithin(p.limits.Exit, c.stream.Ended()) {
			c.clean()
		}
	}
	for _, e := range p.log.Since(0) {
		if e.Kind == wire.Received && e.Message.IsResponse() && string(e.Message.ID) == "null" {
			p.failf("a response has no id, though every message could be read: %.200s", e.Message.Raw)
		}
	}
}
