package transporttest

import "time"

// The rules of this file: a task stops when it is asked to, and says so when it has.
// The specification demands that the wish is acknowledged; it leaves open whether
// and when the work stops. That it does is quality.

var taskRules = []Rule{
	{
		Name: "task-cancelled", Page: pageTasks, Level: Quality, Settings: Statelesses, Needs: []Need{NeedTask},
		Explanation: "tasks/cancel reaches the work of a task, which stops; then the task is cancelled",
		run:         taskIsCancelled,
	},
	{
		Name: "task-cooperative", Page: pageTasks, Level: Quality, Settings: Statelesses, Needs: []Need{NeedTask, "cancel_ignore"},
		Explanation: "a task is not reported as cancelled while its work goes on",
		run:         cancelIsCooperative,
	},
	{
		Name: "task-final", Page: pageTasks, Level: Must, Settings: Statelesses, Needs: []Need{NeedTask},
		Explanation: "a task that has ended never changes, whatever is sent for it",
		run:         endIsFinal,
	},
	{
		Name: "task-cancel-repeated", Page: pageTasks, Level: Must, Settings: Statelesses, Needs: []Need{NeedTask},
		Explanation: "each tasks/cancel is acknowledged, also a second one and one that comes after the end; the work is stopped once",
		run:         cancelIsRepeated,
	},
	{
		Name: "task-unknown", Page: pageTasks, Level: Should, Settings: Statelesses, Needs: []Need{NeedTask},
		Explanation: "tasks/cancel for a task that there is not is answered with an error and touches no other",
		run: func(p *probe) {
			c := p.openForTasks()
			t := c.longTask()
			c.refused((&task{t.work, "heedcheck-" + t.id[1:]}).about("tasks/cancel", nil), "tasks/cancel for a task that there is not")
			t.unmoved("after tasks/cancel for another id")
		},
	},
	{
		Name: "task-notification", Page: pageTasks, Level: Quality, Settings: Statelesses, Needs: []Need{NeedTask},
		Explanation: "notifications/cancelled for the call that has become a task does not touch the task",
		run: func(p *probe) {
			c := p.openForTasks()
			t := c.longTask()
			c.cancel(t.request.id, stop)
			c.fence("after a cancel of a call that has become a task")
			p.sleep(p.limits.Quiet)
			t.unmoved("after notifications/cancelled for its call")
		},
	},
	{
		Name: "task-asking-cancelled", Page: pageTasks, Level: Quality, Settings: Statelesses, Needs: []Need{NeedTask, "cancel_nested"},
		Explanation: "tasks/cancel ends a task that waits for input, and an answer that comes later changes nothing",
		run:         askingTaskIsCancelled,
	},
	{
		Name: "task-isolation", Page: pageTasks, Level: Must, Settings: HTTPStateless | HTTPStatelessJSON, Needs: []Need{NeedTask, NeedOther},
		Explanation: "nobody can see, answer or cancel a task that somebody else has started, though they know its id",
		run:         tasksAreIsolated,
	},
}

func taskIsCancelled(p *probe) {
	c := p.openForTasks()
	t := c.longTask()
	t.stop()
	if t.tag != "" {
		if e := t.await("stopped"); !e.by("peer") {
			p.failf("the work is cancelled by %q, and not by its peer", e.Origin)
		}
	}
	s := t.reaches(t.patience(), "does not end", taskState.ended)
	switch {
	case s.Status == statusCancelled:
	case t.tag == "" && time.Since(t.request.at) < t.lasts*9/10: // it has stopped, in a way of its own
	case t.tag == "":
		p.failf("the task of %s comes to its end, %q, though it was asked to stop", t.called(), s.Status)
	default:
		p.failf("a task that was asked to stop, and has stopped, is %q, %q", s.Status, s.StatusMessage)
	}
}

func cancelIsCooperative(p *probe) {
	c := p.openForTasks()
	t := c.fixture("cancel_ignore", map[string]any{"ms": 1200}).beginTask()
	t.stop()
	s := t.reaches(2*p.limits.Prompt, "does not end", func(s taskState) bool {
		if !s.ended() {
			return false
		}
		// It has ended; then its work must have, before.
		if _, returned := t.has("returned"); !returned {
			p.failf("a task is %q, %q, while its work goes on", s.Status, s.StatusMessage)
		}
		return true
	})
	if s.Status == statusFailed {
		p.failf("a task that was asked to stop, and came to its end all the same, is %q: %.300s", s.Status, s.Error)
	}
}

func endIsFinal(p *probe) {
	c := p.openForTasks()
	done, stopped := c.shortTask(), c.longTask()
	stopped.stop()
	for _, t := range []*task{done, stopped} {
		was := t.reaches(t.patience(), "does not end", taskState.ended)
		t.stop()
		c.send(t.about("tasks/update", map[string]any{"inputResponses": map[string]any{
			"heedcheck": map[string]any{"action": "accept", "content": map[string]any{}},
		}})).answer(p.limits.Prompt, "tasks/update")
		c.cancel(t.request.id, stop)
		c.fence("after what was sent for a task that has ended")
		p.sleep(p.limits.Quiet)
		if is := t.state(); is.outcome() != was.outcome() {
			p.failf("a task that has ended changes: it was %.200s, and is %.200s", was.outcome(), is.outcome())
		}
	}
}

func cancelIsRepeated(p *probe) {
	c := p.openForTasks()
	t := c.longTask()
	var wishes []*request
	for range 3 {
		wishes = append(wishes, c.send(t.about("tasks/cancel", nil)))
	}
	for _, r := range wishes {
		t.acknowledged(r)
	}
	t.reaches(t.patience(), "does not end", taskState.ended)
	t.stop()
	if t.tag == "" {
		return
	}
	n := 0
	for _, e := range t.events() {
		if e.Event == "stopped" {
			n++
		}
	}
	if n != 1 {
		p.failf("the work is stopped %d times by several cancels", n)
	}
}

func askingTaskIsCancelled(p *probe) {
	c := p.openForTasks()
	t := c.fixture("cancel_nested", map[string]any{"kind": "elicitation_form"}).beginTask()
	asking := t.reaches(p.limits.Prompt, "does not ask", func(s taskState) bool { return s.Status == statusAsking && len(s.InputRequests) > 0 })
	t.stop()
	if e := t.await("nested_error"); !e.by("peer") {
		p.failf("the question is given up because of %q, and not because of the peer", e.Origin)
	}
	s := t.reaches(p.limits.Prompt, "does not end", taskState.ended)
	answers := map[string]any{}
	for key := range asking.InputRequests {
		answers[key] = map[string]any{"action": "accept", "content": map[string]any{"name": "Ada"}}
	}
	c.send(t.about("tasks/update", map[string]any{"inputResponses": answers})).answer(p.limits.Prompt, "tasks/update")
	if is := t.state(); s.Status != statusCancelled || is.outcome() != s.outcome() {
		p.failf("a task that was cancelled while it asked is %q, and %q after an answer", s.Status, is.Status)
	}
}

func tasksAreIsolated(p *probe) {
	c := p.openForTasks()
	t := c.longTask()
	stranger := c.asSomebodyElse()
	stranger.fence("asked by another principal")
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		stranger.refused(t.about(method, map[string]any{"inputResponses": map[string]any{}}), method+" for somebody else's task")
	}
	p.sleep(p.limits.Quiet)
	t.unmoved("after somebody else has named it")
	t.stop() // whether that ends it is another rule's matter
}

// refused fails the rule when a request is not answered with an error.
func (c *client) refused(o option, what string) {
	r := c.send(o)
	e, ok := r.answered(c.p.limits.Prompt)
	switch {
	case !ok && r.x != nil && r.x.Status() >= 400: // in the words of HTTP
	case !ok:
		c.p.failf("%s %s", what, r.unanswered(c.p.limits.Prompt))
	case e.Message.Error == nil:
		c.p.failf("%s is answered with a result: %.300s", what, e.Message.Raw)
	}
}
