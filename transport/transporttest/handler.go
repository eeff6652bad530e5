package transporttest

import "time"

// The rules of this file: what handlers see of a cancel, and what is no cancel.

var handlerRules = []Rule{
	{
		Name: "reason-delivered", Page: pageCancel, Level: Quality, Settings: notified, Needs: []Need{"cancel_wait"},
		Explanation: "the handler learns the reason as the client gave it, whatever characters it has",
		run: func(p *probe) {
			const reason = "user pressed \"stop\" %s %d \\ ☃ 𝄞 \u0007\n\t\u2028 </script>"
			c := p.open()
			w := c.slow().begin()
			w.request.stop(reason)
			switch e := w.await("observed"); {
			case e.Reason == "":
				p.failf("the handler is told no reason")
			case !e.by("peer") || e.Reason != reason:
				p.failf("the handler learns of a cancel by %q because of %q", e.Origin, e.Reason)
			}
		},
	},
	{
		Name: "hook-frees", Level: Quality, Settings: All, Needs: []Need{"cancel_hook"},
		Explanation: "a hook that runs at the cancel frees a handler that sits in a blocking read",
		run: func(p *probe) {
			c := p.open()
			w := c.fixture("cancel_hook", nil).begin()
			w.request.stop(stop)
			w.await("hook")
		},
	},
	{
		Name: "shield-commits", Level: Quality, Settings: All, Needs: []Need{"cancel_shield"},
		Explanation: "a commit behind a shield comes to its end though the cancel arrives meanwhile, and the handler learns of it after",
		run: func(p *probe) {
			c := p.open()
			for _, ms := range []int{400, 1600, 6400} {
				if c.commitsBehindShield(ms) {
					return
				}
			}
			p.failf("the handler does not learn of a cancel that came while it was behind its shield")
		},
	},
	{
		Name: "step-stops", Level: Quality, Settings: All, Needs: []Need{"cancel_poll"},
		Explanation: "a handler that looks between its steps takes no further step after the cancel",
		run: func(p *probe) {
			c := p.open()
			w := c.fixture("cancel_poll", map[string]any{"steps": 200, "step_ms": 50}).begin()
			w.request.stop(stop)
			if e := w.await("stopped"); e.Step >= 200 {
				p.failf("the handler takes all of its steps")
			}
		},
	},
	{
		Name: "foreign-error-answered", Level: Quality, Settings: All, Needs: []Need{"cancel_foreign"},
		Explanation: "a handler that fails with the cancellation of another request is answered: its own was not cancelled",
		run: func(p *probe) {
			c := p.open()
			m := c.fixture("cancel_foreign", nil).send().request.answer(p.limits.Prompt, "the call")
			if !isToolError(m) {
				p.failf("the call is answered as a success: %.200s", m.Raw)
			}
		},
	},
	{
		Name: "timeout-answered", Level: Quality, Settings: All, Needs: []Need{"cancel_timeout"},
		Explanation: "a call that takes longer than the server allows is answered with an error, unlike one that its client has cancelled",
		run: func(p *probe) {
			c := p.open()
			w := c.fixture("cancel_timeout", nil).send()
			m := w.request.answer(p.limits.Prompt, "a call under a limit of 200 ms")
			if !isToolError(m) {
				p.failf("a call that was ended by its limit is answered as a success: %.200s", m.Raw)
			}
			if e := w.await("observed"); !e.by("timeout") {
				p.failf("the handler learns of a cancel by %q, and not by the timeout", e.Origin)
			}
			c.endsWithinItsLimit()
		},
	},
}

// endsWithinItsLimit makes a call that ends before its limit. On a machine that is so busy that
// its whole way takes as long as the limit, it may meet that all the same.
func (c *client) endsWithinItsLimit() {
	const limit, attempts = 200 * time.Millisecond, 20
	for range attempts {
		w := c.fixture("cancel_timeout", map[string]any{"ms": 1}).send()
		m := w.request.answer(c.p.limits.Prompt, "a call within its limit")
		switch {
		case !isToolError(m):
			return
		case time.Since(w.request.at) < limit:
			c.p.failf("a call within its limit fails: %.200s", m.Raw)
		}
	}
	c.p.failf("a call that ends at once fails %d times by its limit of %s", attempts, limit)
}

// commitsBehindShield cancels a call behind its shield. It reports false when the handler has come
// to its end without a cancel, which on a busy machine may have been too late.
func (c *client) commitsBehindShield(ms int) bool {
	w := c.fixture("cancel_shield", map[string]any{"ms": ms}).send()
	w.await("entered")
	w.request.stop(stop)
	limit := c.p.within(c.p.limits.Prompt + time.Duration(ms)*time.Millisecond)
	for !limit.passed() {
		if _, observed := w.has("observed"); observed {
			break
		}
		if _, done := w.has("done"); done {
			return false
		}
		c.p.sleep(20 * time.Millisecond)
	}
	w.await("observed")
	if _, ok := w.has("committed"); !ok {
		c.p.failf("the commit is split: %s", wordsOf(w.events()))
	}
	return true
}
