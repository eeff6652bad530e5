package transporttest

import "time"

// The rules of this file: not only tools can be cancelled.

var featureRules = []Rule{
	featureRule("cancel-resource", "resources/read", All, func(tag string) option {
		uri := "cancel://wait/" + tag
		return option{method: "resources/read", name: uri, params: map[string]any{"uri": uri}}
	}),
	featureRule("cancel-prompt", "prompts/get", All, func(tag string) option {
		const name = "cancel_wait_prompt"
		return option{method: "prompts/get", name: name, params: map[string]any{"name": name, "arguments": map[string]any{"tag": tag}}}
	}),
	featureRule("cancel-completion", "completion/complete", All, func(tag string) option {
		return option{method: "completion/complete", params: map[string]any{
			"ref":      map[string]any{"type": "ref/prompt", "name": "cancel_wait_prompt"},
			"argument": map[string]any{"name": "tag", "value": "wait:" + tag},
		}}
	}),
	featureRule("cancel-subscribe", "resources/subscribe", Handshakes, func(tag string) option {
		return option{method: "resources/subscribe", params: map[string]any{"uri": "cancel://subscribe/" + tag}}
	}),
	featureRule("cancel-method", "a method of the server's own", All, func(tag string) option {
		return option{method: "heed/wait", params: map[string]any{"tag": tag, "ms": 60_000}}
	}),
}

// startsOrLacks waits until the work has started. A server that has nothing of the kind that
// waits has answered instead.
func (w *work) startsOrLacks(what string) {
	p := w.c.p
	limit := p.within(p.limits.Prompt)
	for pause := 2 * time.Millisecond; !limit.passed(); pause = min(2*pause, 50*time.Millisecond) {
		e, answered := p.log.Find(w.request.from, w.request.isAnswer)
		if _, started := w.has("started"); started {
			return
		}
		if answered {
			p.skipf("cannot be judged from outside: %s does not wait for anything here but is answered: %.120s", what, e.Message.Raw)
		}
		p.sleep(pause)
	}
	w.await("started")
}

func featureRule(name, what string, settings Setting, request func(tag string) option) Rule {
	return Rule{
		Name: name, Page: pageCancel, Level: Should, Settings: settings, Needs: []Need{"cancel_wait"},
		Explanation: what + " can be cancelled, and is not answered then",
		run: func(p *probe) {
			c := p.open()
			w := &work{c: c, tag: p.tag()}
			w.o = request(w.tag)
			w.send()
			w.startsOrLacks(what)
			since := p.log.Len()
			w.request.stop(stop)
			w.stopped()
			w.quiet(since, "the cancelled request")
			c.fence("after a cancelled request")
		},
	}
}
