package transporttest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// work is a call that goes on for a while.
type work struct {
	c       *client
	o       option
	tag     string        // of a fixture; "" for other tools, of which nothing can be seen
	lasts   time.Duration // when it is left alone; 0: longer than any rule
	request *request      // once it was begun
}

// slow is work that goes on until it is cancelled, or at least for seconds.
func (c *client) slow() *work {
	if c.p.survey.fixtures() {
		return c.fixture("cancel_wait", nil)
	}
	return c.found(NeedSlow, c.p.survey.lasts)
}

// found is work that a tool does which is no fixture.
func (c *client) found(need Need, lasts time.Duration) *work {
	tool := c.p.survey.calls[need]
	return &work{c: c, o: call(tool.Tool, tool.Arguments), lasts: lasts}
}

// fixture is work of a fixture, of which can be seen what it does.
func (c *client) fixture(tool string, arguments map[string]any) *work {
	w := &work{c: c, tag: c.p.tag()}
	all := map[string]any{"tag": w.tag}
	maps.Copy(all, arguments)
	w.o = call(tool, all)
	return w
}

// called is what the work is called in messages.
func (w *work) called() string { return cmp.Or(w.o.name, w.o.method) }

// soon is the limit for what the cancel of the work should bring about at once. It
// is well before the work would be over by itself.
func (w *work) soon() time.Duration {
	if w.lasts > 0 {
		return min(w.c.p.limits.Prompt, w.lasts/2)
	}
	return w.c.p.limits.Prompt
}

// closedSoon waits until ended is closed by the cancel of the work, and not by its end.
func (w *work) closedSoon(ended <-chan struct{}) bool {
	if w.lasts > 0 {
		return w.c.p.closes(w.soon(), ended)
	}
	return w.c.p.closedWithin(w.soon(), ended)
}

// withID gives the call an id, as JSON text.
func (w *work) withID(id string) *work {
	w.o.id = id
	return w
}

// send sends the call and waits for nothing.
func (w *work) send() *work {
	w.request = w.c.send(w.o)
	return w
}

// begin sends the call and waits until the work has begun.
func (w *work) begin() *work {
	w.send()
	w.await("started")
	if w.tag == "" {
		// That can only be guessed; but the reading of it can be known.
		w.c.p.sleep(min(w.lasts/5, 300*time.Millisecond))
		w.untouched("before it is cancelled")
	}
	return w
}

// event is what fixtures write down.
type event struct {
	Event  string `json:"event"`
	Origin string `json:"origin"`
	Reason string `json:"reason"`
	Step   int    `json:"step"`
}

// by tells whether somebody has cancelled, as far as the server says who it was. Only
// what handlers see is judged, not in which words.
func (e event) by(origin string) bool { return e.Origin == "" || e.Origin == origin }

// cancelledBy fails the rule when a handler learns something wrong. That it learns no
// reason is not wrong, but for the rule reason-delivered.
func (e event) cancelledBy(p *probe, origin, reason string) {
	if !e.by(origin) || e.Reason != "" && e.Reason != reason || e.Origin != "" && e.Reason == "" {
		p.failf("the handler learns of a cancel by %q because of %q", e.Origin, e.Reason)
	}
}

// events are those of the work so far.
func (w *work) events() []event {
	o := call("cancel_events", map[string]any{"tag": w.tag})
	o.control = true
	m := w.c.send(o).result(w.c.p.limits.Prompt, "cancel_events, which tells what handlers see,")
	var result struct {
		Events []event `json:"events"`
	}
	w.c.structured(m, "cancel_events", &result)
	return result.Events
}

// structured reads a tool's structured result, which revisions that have none
// carry as text.
func (c *client) structured(m wire.Message, tool string, into any) {
	var result struct {
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	err := json.Unmarshal(m.Result, &result)
	if err == nil && result.StructuredContent == nil && len(result.Content) > 0 {
		result.StructuredContent = json.RawMessage(result.Content[0].Text)
	}
	if err == nil {
		err = json.Unmarshal(result.StructuredContent, into)
	}
	if err != nil {
		c.p.errorf("%s: %v: %.200s", tool, err, m.Raw)
	}
}

// has returns the first event by that word.
func (w *work) has(word string) (event, bool) {
	events := w.events()
	i := slices.IndexFunc(events, func(e event) bool { return e.Event == word })
	if i < 0 {
		return event{}, false
	}
	return events[i], true
}

// await waits for an event of a fixture. Of other tools it knows nothing.
func (w *work) await(word string) event { return w.awaitWithin(w.c.p.limits.Prompt, word) }

func (w *work) awaitWithin(d time.Duration, word string) event {
	if w.tag == "" {
		return event{}
	}
	p := w.c.p
	limit := p.within(d)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if e, ok := w.has(word); ok {
			return e
		}
		if limit.passed() {
			p.failf("%s: %q does not happen within %s; what did: %s", w.called(), word, d, wordsOf(w.events()))
		}
		p.sleep(pause)
	}
}

func wordsOf(events []event) string {
	text := "nothing"
	for i, e := range events {
		if i == 0 {
			text = ""
		} else {
			text += ", "
		}
		text += e.Event
		if e.Origin != "" {
			text += " (" + e.Origin + ")"
		}
	}
	return text
}

// stopped waits until a cancel has taken effect. A fixture says so; of another tool it is
// known when it does not come to its end in its time. That it is not answered is
// not looked at: see quiet.
func (w *work) stopped() {
	if w.tag != "" {
		w.await("observed")
		return
	}
	p := w.c.p
	if !notified.Has(p.setting) || w.lasts == 0 {
		return
	}
	end := w.request.at.Add(w.lasts)
	e, ok := p.listen(time.Until(end)+w.lasts/4+p.limits.Quiet, w.request.from, w.request.isAnswer)
	if ok && time.Since(w.request.at) > w.lasts*9/10 {
		p.failf("%s comes to its end though it was cancelled: %.200s", w.called(), e.Message.Raw)
	}
}

// stoppedIfStarted is stopped for a call that may have been cancelled before a handler had it.
// Of tools that are no fixtures it knows nothing.
func (w *work) stoppedIfStarted() {
	if w.tag == "" {
		return
	}
	if _, started := w.has("started"); started {
		w.stopped()
	}
}

// untouched fails the rule when the work has stopped.
func (w *work) untouched(when string) {
	p := w.c.p
	if w.tag != "" {
		for _, word := range []string{"observed", "elapsed", "stopped"} {
			if e, found := w.has(word); found {
				p.failf("%s has ended %s: %s %s %q", w.called(), when, e.Event, e.Origin, e.Reason)
			}
		}
	}
	if e, found := p.log.Find(w.request.from, w.request.isAnswer); found {
		w.notOverAnyhow(e.At - p.log.Since(w.request.from)[0].At)
		p.failf("%s is answered %s: %.200s", w.called(), when, e.Message.Raw)
	}
	if x := w.request.x; x != nil {
		select {
		case <-x.Done():
			w.notOverAnyhow(time.Since(w.request.at))
			p.failf("the response of %s has ended %s%s", w.called(), when, w.request.status())
		default:
		}
	}
}

// notOverAnyhow skips the rule when work that has ended after so long would have by itself: a machine on which
// the rule takes as long as the work is no server's fault.
func (w *work) notOverAnyhow(after time.Duration) {
	if w.lasts > 0 && after > w.lasts*9/10 {
		w.c.p.skipf("cannot be judged here: %s is over by itself after %s, before this machine has tried the rule",
			w.called(), w.lasts.Round(time.Millisecond))
	}
}

// wind waits as long as something could come that must not.
func (w *work) wind(since int) {
	d := w.c.p.limits.Quiet
	if w.tag == "" && w.lasts > 0 {
		// Whoever ignores the cancel answers when the work is over.
		d += max(0, time.Until(w.request.at.Add(w.lasts+w.lasts/4)))
	}
	w.c.p.listen(d, since, w.request.isAnswer)
}

// quiet waits as long as an answer could take that must not come, and fails the
// rule if it does.
func (w *work) quiet(since int, what string) {
	w.wind(since)
	w.request.silent(since, what)
}

// fence makes sure that all that was sent before has been read, and returns the index
// of the log from which on the server knows it.
func (c *client) fence(when string) int { return c.fenceWithin(c.p.limits.Prompt, when) }

func (c *client) fenceWithin(d time.Duration, when string) int {
	o := option{method: "ping", control: true}
	if !c.p.setting.handshake() {
		o.method = "server/discover"
	}
	r := c.send(o)
	e, ok := r.answered(d)
	if !ok {
		c.p.failf("%s, %s, %s", o.method, when, r.unanswered(d))
	}
	if e.Message.Error != nil {
		c.p.failf("%s is answered with an error, %s: %.200s", o.method, when, e.Message.Raw)
	}
	return e.Index + 1
}

// received returns what was received since an index and is about no control request.
func (c *client) received(since int, match func(wire.Message) bool) []wire.Message {
	var found []wire.Message
	for _, e := range c.p.log.Since(since) {
		if e.Kind != wire.Received || e.Control || isControlAnswer(e.Message) {
			continue
		}
		for _, m := range e.Message.Each() {
			if match(m) {
				found = append(found, m)
			}
		}
	}
	return found
}

// isControlAnswer tells whether m answers a request that only finds out what happens.
func isControlAnswer(m wire.Message) bool {
	const prefix = `"control-`
	return m.IsResponse() && len(m.ID) > len(prefix) && string(m.ID[:len(prefix)]) == prefix
}
