package transporttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

const (
	extensionTasks  = "io.modelcontextprotocol/tasks"
	taskCapability  = `{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{},"extensions":{"` + extensionTasks + `":{}}}`
	statusWorking   = "working"
	statusAsking    = "input_required"
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
)

// task is work that outlives its call.
type task struct {
	*work
	id string
}

// taskState is what tasks/get says.
type taskState struct {
	Status        string                     `json:"status"`
	StatusMessage string                     `json:"statusMessage"`
	Result        json.RawMessage            `json:"result"`
	Error         json.RawMessage            `json:"error"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
}

func (s taskState) ended() bool {
	return s.Status == statusCompleted || s.Status == statusFailed || s.Status == statusCancelled
}

// outcome is what must not change any more once the task has ended.
func (s taskState) outcome() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s%s", s.Status, s.Result, s.Error))
}

// openForTasks connects a client that knows tasks.
func (p *probe) openForTasks() *client { return p.openWith(p.version(), taskCapability) }

// hasTasks tells whether the server has the extension. Only the stateless era has it.
func (c *client) hasTasks() bool {
	if c.p.setting.handshake() {
		return false
	}
	m := c.send(option{method: "server/discover", control: true}).answer(c.p.limits.Prompt, "server/discover")
	var result struct {
		Capabilities struct {
			Extensions map[string]json.RawMessage `json:"extensions"`
		} `json:"capabilities"`
	}
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
		return false
	}
	_, has := result.Capabilities.Extensions[extensionTasks]
	return has
}

// longTask is a task that goes on for longer than any rule, or at least for seconds,
// and that ends when it is cancelled.
func (c *client) longTask() *task {
	if c.p.survey.fixtures() {
		return c.fixture("cancel_poll", map[string]any{"steps": 2400, "step_ms": 25}).beginTask()
	}
	return c.found(NeedTask, c.p.survey.asTask).beginTask()
}

// shortTask is a task that soon comes to its end by itself.
func (c *client) shortTask() *task {
	if c.p.survey.fixtures() {
		return c.fixture("cancel_wait", map[string]any{"ms": 100}).beginTask()
	}
	return c.found(NeedTask, c.p.survey.asTask).beginTask()
}

// beginTask sends the call and waits until it has become a task that works.
func (w *work) beginTask() *task {
	t := w.tryTask()
	if t == nil {
		w.c.p.skipf("%s is answered itself, and does not become a task", w.called())
	}
	w.await("started")
	return t
}

// tryTask sends the call. It returns nil when that is answered itself.
func (w *work) tryTask() *task {
	w.send()
	m := w.request.result(w.c.p.limits.Slow, w.called())
	var result struct {
		ResultType string `json:"resultType"`
		TaskID     string `json:"taskId"`
	}
	if json.Unmarshal(m.Result, &result) != nil || result.ResultType != "task" {
		return nil
	}
	if result.TaskID == "" {
		w.c.p.failf("%s becomes a task without an id: %.300s", w.called(), m.Raw)
	}
	t := &task{w, result.TaskID}
	w.c.p.onClean(t.abandon)
	return t
}

// about is a request that names the task.
func (t *task) about(method string, params map[string]any) option {
	all := map[string]any{"taskId": t.id}
	for name, value := range params {
		all[name] = value
	}
	return option{method: method, name: t.id, params: all}
}

// abandon tidies up behind a rule.
func (t *task) abandon() {
	o := t.about("tasks/cancel", nil)
	o.control = true
	text := t.c.text(&o)
	if t.c.stream != nil {
		r := t.c.newRequest(o)
		if t.c.stream.SendControl(text) == nil { // else the server is gone, and needs no cancel
			r.answered(t.c.p.limits.Prompt) // what was read and has not begun would end with the stream
		}
		return
	}
	x := t.c.post(text, o.method, o.name, true)
	if !t.c.p.closedWithin(t.c.p.limits.Prompt, x.Done()) {
		x.Drop()
	}
}

// state asks how the task is.
func (t *task) state() taskState {
	o := t.about("tasks/get", nil)
	o.control = true
	m := t.c.send(o).result(t.c.p.limits.Prompt, "tasks/get")
	var s taskState
	if err := json.Unmarshal(m.Result, &s); err != nil || s.Status == "" {
		t.c.p.failf("tasks/get is answered with what is no task: %.300s", m.Raw)
	}
	return s
}

// stop asks the task to stop. The server must say that it was understood, and no more.
func (t *task) stop() { t.acknowledged(t.c.send(t.about("tasks/cancel", nil))) }

func (t *task) acknowledged(r *request) {
	m := r.result(t.c.p.limits.Prompt, "tasks/cancel")
	var result map[string]json.RawMessage
	_ = json.Unmarshal(m.Result, &result) // what is no object has no members
	if kind := string(result["resultType"]); kind != `"complete"` {
		t.c.p.failf(`tasks/cancel is acknowledged with resultType %.40s, and not "complete"`, kind)
	}
	for name := range result {
		if name != "resultType" && name != "_meta" {
			t.c.p.failf("tasks/cancel is acknowledged with more than that: %.300s", m.Raw)
		}
	}
}

// reaches waits until the task is in a state that fits.
func (t *task) reaches(d time.Duration, what string, fits func(taskState) bool) taskState {
	p := t.c.p
	limit := p.within(d)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		s := t.state()
		if fits(s) {
			return s
		}
		if limit.passed() {
			p.failf("the task of %s %s within %s: it is %q, %q", t.called(), what, d, s.Status, s.StatusMessage)
		}
		p.sleep(pause)
	}
}

// patience is how long the task may take to its end, whatever becomes of it.
func (t *task) patience() time.Duration {
	return t.lasts + t.lasts/4 + t.c.p.limits.Prompt
}

// unmoved fails the rule when the task has ended or was asked to stop.
func (t *task) unmoved(when string) {
	if t.tag != "" {
		for _, word := range []string{"observed", "stopped", "returned"} {
			if e, found := t.has(word); found {
				t.c.p.failf("the work of a task has ended %s: %s %s", when, e.Event, e.Origin)
			}
		}
	}
	if s := t.state(); s.Status != statusWorking {
		t.notOverAnyhow(time.Since(t.request.at))
		t.c.p.failf("a task is %q %s, %q", s.Status, when, s.StatusMessage)
	}
}

// asSomebodyElse is a client of the same endpoint with the headers of another principal.
func (c *client) asSomebodyElse() *client {
	d := c.twin()
	d.http = &wire.HTTP{Log: c.p.log, URL: c.http.URL, Transport: c.http.Transport, Header: c.other}
	return d
}

// measureTask leaves the tool that becomes a task alone to see how long it takes: the one that
// was given, or the slow one.
func (s *survey) measureTask(c *client) {
	if !s.tasks || s.why[NeedTask] != "" {
		return
	}
	given, ok := s.calls[NeedTask]
	if !ok {
		if given, ok = s.calls[NeedSlow]; !ok {
			return
		}
		s.calls[NeedTask] = given
	}
	began := time.Now()
	knowing := c.twin()
	knowing.capabilities = taskCapability
	w := &work{c: knowing, o: call(given.Tool, given.Arguments)}
	t := w.tryTask()
	if t == nil {
		s.noTask(fmt.Sprintf("%s with %s does not become a task", given.Tool, given.Arguments))
		return
	}
	for !t.state().ended() && time.Since(began) < c.p.limits.Slow {
		c.p.sleep(50 * time.Millisecond)
	}
	const short = 800 * time.Millisecond
	switch s.asTask = time.Since(began); {
	case s.asTask >= c.p.limits.Slow:
		s.noTask(fmt.Sprintf("the task of %s with %s does not end within %s when it is left alone", given.Tool, given.Arguments, c.p.limits.Slow))
	case s.asTask < short:
		s.noTask(fmt.Sprintf("the task of %s with %s takes only %s", given.Tool, given.Arguments, s.asTask.Round(time.Millisecond)))
	}
}

func (s *survey) noTask(why string) {
	delete(s.calls, NeedTask)
	s.why[NeedTask] = why + "; name a tool and arguments the calls of which become tasks that take a few seconds"
}

func (s *survey) missingTask() string {
	switch _, found := s.calls[NeedTask]; {
	case !s.tasks:
		return "the server does not advertise the extension " + extensionTasks
	case found, s.fixtures():
		return ""
	case s.why[NeedTask] != "":
		return s.why[NeedTask]
	}
	return "the server has nothing that looks like " + string(NeedTask) + "; name one"
}
