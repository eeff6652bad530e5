package transporttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// request is a request that was sent, and what has come for it.
type request struct {
	c     *client
	id    string // as JSON text
	token string // of progress, as JSON text; "" without one
	from  int    // index of the log at which it was sent
	x     *wire.Exchange
	also  []*wire.Exchange // on which its stream was resumed
	at    time.Time
}

// option is what can be said about a request.
type option struct {
	id      string         // as JSON text; "": the next number
	method  string         // of the request
	name    string         // of the tool, prompt or resource it is about
	params  map[string]any // without _meta
	meta    map[string]any // besides what the era demands
	raw     string         // the params as JSON text, in place of both
	control bool           // it only finds out what has happened
	report  bool           // progress is asked for
}

// text makes the message.
func (c *client) text(o *option) []byte {
	if o.id == "" {
		c.lastID++
		o.id = strconv.FormatInt(c.lastID, 10)
		if o.control {
			o.id = strconv.Quote("control-" + o.id)
		}
	}
	if o.report {
		meta := map[string]any{"progressToken": "progress-" + o.id}
		for key, value := range o.meta {
			meta[key] = value
		}
		o.meta = meta
	}
	params := o.raw
	if params == "" {
		params = c.withMeta(o.params, o.meta)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, o.id, o.method, params)
}

// send sends a request. It waits for nothing.
func (c *client) send(o option) *request {
	text := c.text(&o)
	r := c.newRequest(o)
	if c.stream != nil {
		c.write(o.control, text)
		return r
	}
	r.x = c.post(text, o.method, o.name, o.control)
	c.p.onClean(r.x.Drop)
	return r
}

func (c *client) newRequest(o option) *request {
	r := &request{c: c, id: o.id, from: c.p.log.Len(), at: time.Now()}
	if o.report {
		token, _ := json.Marshal("progress-" + o.id) // text always can be
		r.token = string(token)
	}
	return r
}

// call is the option for a call of a tool.
func call(tool string, arguments any) option {
	return option{method: "tools/call", name: tool, params: map[string]any{"name": tool, "arguments": arguments}}
}

// mine tells whether an entry is about this request. On a stream of lines a
// request of the server belongs to nobody.
func (r *request) mine(e wire.Entry) bool {
	if r.x != nil {
		if e.Stream == r.x.Stream {
			return true
		}
		for _, x := range r.also {
			if e.Stream == x.Stream {
				return true
			}
		}
		return false
	}
	if e.Kind != wire.Received {
		return false
	}
	for _, m := range e.Message.Each() {
		if m.IsAnswerTo(r.id) || r.isReport(m) {
			return true
		}
	}
	return false
}

func (r *request) isReport(m wire.Message) bool {
	return r.token != "" && m.Method == "notifications/progress" && wire.SameID(string(m.Param("progressToken")), r.token)
}

// isAnswer tells whether an entry is the answer.
func (r *request) isAnswer(e wire.Entry) bool {
	return e.Kind == wire.Received && e.Message.IsAnswerTo(r.id) && r.mine(e)
}

// isMessage tells whether an entry is any message for this request.
func (r *request) isMessage(e wire.Entry) bool {
	return (e.Kind == wire.Received || e.Kind == wire.Garbage) && r.mine(e)
}

// answered waits for the answer, as long as d.
func (r *request) answered(d time.Duration) (wire.Entry, bool) {
	e, ok := r.c.p.wait(d, r.from, func(e wire.Entry) bool {
		return r.isAnswer(e) || e.Kind == wire.Closed && r.isLast(e) // a stream that has ended brings nothing any more
	})
	return e, ok && r.isAnswer(e)
}

// isLast tells whether an end is that of the stream that the answer comes on.
func (r *request) isLast(e wire.Entry) bool {
	switch {
	case r.x == nil:
		return e.Stream == wire.StreamName
	case len(r.also) > 0:
		return e.Stream == r.also[len(r.also)-1].Stream
	}
	return e.Stream == r.x.Stream
}

// answer is the answer, which must come within a limit.
func (r *request) answer(d time.Duration, what string) wire.Message {
	e, ok := r.answered(d)
	if !ok {
		r.c.p.failf("%s %s", what, r.unanswered(d))
	}
	return e.Message
}

// result is the result, which must come within a limit.
func (r *request) result(d time.Duration, what string) wire.Message {
	m := r.answer(d, what)
	if m.Error != nil {
		r.c.p.failf("%s is answered with an error: %.300s", what, m.Raw)
	}
	return m
}

// status is that of a response that is no message, in words.
func (r *request) status() string {
	switch {
	case r.x == nil:
		return ""
	case r.x.Err() != nil:
		return fmt.Sprintf(" (%.200s)", r.x.Err())
	case r.x.Status() == 0 || r.x.Status() == http.StatusOK:
		return ""
	}
	return fmt.Sprintf(" (HTTP status %d)", r.x.Status())
}

// stop cancels the request as its client does: by a notification, or by leaving.
func (r *request) stop(reason string) {
	if notified.Has(r.c.p.setting) {
		r.c.cancel(r.id, reason)
		return
	}
	r.x.Drop()
	r.c.p.closedWithin(r.c.p.limits.Prompt, r.x.Done())
}

// silent fails the rule if the request was answered since it was cancelled.
func (r *request) silent(since int, what string) {
	if e, found := r.c.p.log.Find(since, r.isAnswer); found {
		r.c.p.failf("%s is answered: %.200s", what, e.Message.Raw)
	}
	r.garbled()
}

// garbled fails the rule if something else than messages came on the response.
func (r *request) garbled() {
	if r.x == nil {
		return
	}
	if e, found := r.c.p.log.Find(r.from, func(e wire.Entry) bool { return e.Kind == wire.Garbage && r.mine(e) }); found {
		r.c.p.failf("the response carries what is no message: %.200q", e.Text)
	}
}

// reports counts the progress reports since an index.
func (r *request) reports(since int) int { return r.count(since, r.isReport) }

func (r *request) count(since int, match func(wire.Message) bool) int {
	n := 0
	for _, e := range r.c.p.log.Since(since) {
		if e.Kind == wire.Received && match(e.Message) {
			n++
		}
	}
	return n
}

// isToolError tells whether m is a failure, as an error or as a result that says so.
func isToolError(m wire.Message) bool {
	var result struct {
		IsError bool `json:"isError"`
	}
	return m.Error != nil || json.Unmarshal(m.Result, &result) == nil && result.IsError
}
