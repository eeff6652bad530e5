package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/internal/model"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	toolObeys           = "obeys"
	toolStubborn        = "stubborn"
	toolLimited         = "limited"
	toolStubbornLimited = "stubborn_limited"

	limit       = 200 * time.Millisecond
	grace       = 5 * time.Second
	parkTimeout = 30 * time.Second
	earlyLife   = 5 * time.Second
	lastWords   = 2750 * time.Millisecond // after the end of stdin, what is owed is answered
)

// request is one request, as the model and as its client see it.
type request struct {
	tag     int // its own number
	workTag int // that of the request whose handler it goes on with; its own in most cases
	peer    *peer
	id      string
	tool    string
	life    model.Life
	events  []model.Event // since it was last settled
	work    *worker       // nil until its handler has begun
	retried bool          // it goes on with another's handler
	refused bool          // it must be answered with an error of the protocol

	started, cancelled, parked time.Time // since when, for the limits
	left                       time.Time // when stdin ended; zero: not yet, or none

	stream *stream // over HTTP
	blind  bool    // its stream was dropped: nobody reads what comes
	state  string  // requestState that it was answered with
	used   bool    // by a retry
	inputs []string

	// What its client has read.
	answers                      []answer
	reports, questions, retracts int
}

func (r *request) obeys() bool { return r.tool == toolObeys || r.tool == toolLimited }
func (r *request) limited() bool {
	return r.tool == toolLimited || r.tool == toolStubbornLimited
}

// answer is a response that a client has read.
type answer struct {
	fate    model.Fate
	refused bool
	raw     string
}

// question is a request of the server's that a client has read.
type question struct {
	peer *peer
	id   string
	of   *request
	open bool
}

// world is one server with its clients, and what the model says of them.
type world struct {
	s          *server.Server
	h          *streamable.Handler
	web        *http.Server
	client     *http.Client
	background sync.WaitGroup
	fault      fault
	closing    chan struct{} // closed by close
	slots      int

	mu        sync.Mutex // guards the fields below
	peers     []*peer
	requests  []*request
	workers   map[int]*worker
	questions []*question
	lines     []string // what went over the wire
	err       error    // the first fault found
	steps     int
}

func (w *world) log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked(format, args...)
}

func (w *world) logLocked(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%s  ", time.Now().Format("05.000"))+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(format, args...)
}

func (w *world) failLocked(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
		w.logLocked("FAULT: %v", w.err)
	}
}

// message is anything that the server writes.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Tag       int             `json:"progressToken"`
		RequestID json.RawMessage `json:"requestId"`
		Messages  []struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
	} `json:"params"`
	Result *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool                       `json:"isError"`
		Inputs  map[string]json.RawMessage `json:"inputRequests"`
		State   string                     `json:"requestState"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Origin string `json:"origin"`
		} `json:"data"`
	} `json:"error"`
}

// receive notes what a client has read; on is the request whose stream brought it, over HTTP.
func (w *world) receive(p *peer, on *request, raw []byte) {
	for _, raw := range w.fault.fromServer(p, raw) {
		w.receiveOne(p, on, raw)
	}
}

func (w *world) receiveOne(p *peer, on *request, raw []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked("%d %s < %s", p.index, p.kind, raw)
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		w.failLocked("no message: %q", raw)
		return
	}
	switch {
	case m.Method == "notifications/progress":
		r := w.requests[m.Params.Tag-1]
		w.rightStreamLocked(p, on, r, raw)
		r.reports++
	case m.Method == "notifications/cancelled":
		for _, q := range w.questions {
			if q.peer == p && q.id == string(m.Params.RequestID) {
				w.rightStreamLocked(p, on, q.of, raw)
				q.open = false
				q.of.retracts++
				return
			}
		}
		w.failLocked("a cancel of nothing that was asked: %s", raw)
	case m.Method != "":
		tag := 0
		if len(m.Params.Messages) == 1 {
			_, _ = fmt.Sscanf(m.Params.Messages[0].Content.Text, "tag:%d", &tag)
		}
		k := w.workers[tag]
		if k == nil || k.of == nil {
			w.failLocked("a question of nobody: %s", raw)
			return
		}
		w.rightStreamLocked(p, on, k.of, raw)
		k.of.questions++
		w.questions = append(w.questions, &question{peer: p, id: string(m.ID), of: k.of, open: true})
	case string(m.ID) == `"init"`:
	default:
		w.answeredLocked(p, on, &m, raw)
	}
}

func (w *world) rightStreamLocked(p *peer, on, r *request, raw []byte) {
	if p != r.peer || on != nil && on != r {
		w.failLocked("a message of tag %d went elsewhere: %s", r.tag, raw)
	}
}

func (w *world) answeredLocked(p *peer, on *request, m *message, raw []byte) {
	r := on
	if r == nil {
		r = p.holder[string(m.ID)]
	}
	if r == nil || r.peer != p || r.id != string(m.ID) {
		w.failLocked("an answer to nobody: %s", raw)
		return
	}
	a := answer{raw: string(raw)}
	switch {
	case m.Result == nil && m.Error == nil:
		w.failLocked("an answer that is none: %s", raw)
	case m.Error != nil && m.Error.Data.Origin != "":
		a.fate = model.Cancelled
	case m.Error != nil && m.Error.Code == -32603: // a panic
		a.fate = model.Failure
	case m.Error != nil:
		a.refused = true
		if on == nil && m.Error.Code == -32600 { // of a duplicate; the id's holder is left alone
			for _, other := range w.requests {
				if other.peer == p && other.id == r.id && other.refused && len(other.answers) == 0 {
					r = other
					break
				}
			}
		}
	case m.Result.State != "":
		a.fate, r.state, r.inputs = model.Asked, m.Result.State, nil
		for name := range m.Result.Inputs {
			r.inputs = append(r.inputs, name)
		}
	default:
		a.fate = w.fateLocked(r, m)
	}
	r.answers = append(r.answers, a)
}

// fateLocked tells what a result says, which must be about r's own work.
func (w *world) fateLocked(r *request, m *message) model.Fate {
	text, tag := "", 0
	if len(m.Result.Content) > 0 {
		text = m.Result.Content[0].Text
	}
	if _, err := fmt.Sscanf(text, "tag:%d", &tag); err != nil {
		if !m.Result.IsError {
			w.failLocked("a result of nobody: %q", text)
		}
		return model.Cancelled
	}
	if tag != r.workTag {
		w.failLocked("tag %d got the answer of tag %d", r.workTag, tag)
	}
	if m.Result.IsError {
		return model.Failure
	}
	return model.Value
}

// newWorld starts a server and its clients.
func newWorld(slots int, f fault) *world {
	w := &world{workers: map[int]*worker{}, fault: f, slots: slots, closing: make(chan struct{})}
	w.s = server.New(&mcp.Implementation{Name: "model", Version: "1"}, &server.Options{
		Logger: slog.New(slog.DiscardHandler), ProgressInterval: -1, ClientTimeout: -1, ParkTimeout: parkTimeout,
		Grace: grace, DrainGrace: -1, MaxConcurrent: slots,
	})
	if f.middleware != nil {
		w.s.Use(f.middleware)
	}
	if f.stays {
		w.s.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				go func() { <-w.closing }()
				return next(ctx, req)
			}
		})
	}
	w.tools()
	w.h = streamable.NewHandler(w.s, &streamable.Options{SessionIdle: -1})
	l := bubble.Listen()
	w.web = &http.Server{Handler: w.h}
	w.client = &http.Client{Transport: &http.Transport{DialContext: l.Dial, DisableCompression: true}}
	w.background.Go(func() { _ = w.web.Serve(l) }) // returns http.ErrServerClosed
	for k := range kinds {
		w.peers = append(w.peers, w.connect(k, int(k)))
	}
	return w
}

// settle lets everything happen that can happen now, and compares.
func (w *world) settle() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		w.settleLocked(r)
	}
	w.conserveLocked()
	w.countLocked()
}

// settleLocked finds, among the lives that the model allows, the one that has happened.
func (w *world) settleLocked(r *request) {
	if r.life.Phase == model.Queued && !r.retried && !r.refused {
		if k := w.workers[r.tag]; k != nil && r.work == nil {
			r.work, k.of = k, r
			r.started = time.Now()
			r.events = append(r.events, model.Event{Kind: model.Start})
		}
	}
	before := r.life
	outcomes := []model.Life{r.life}
	if len(r.events) > 0 {
		outcomes = model.Outcomes(r.life, r.events, r.obeys())
	}
	events := r.events
	r.events = nil
	i := slices.IndexFunc(outcomes, func(l model.Life) bool { return w.fitsLocked(r, l) == "" })
	if i < 0 {
		w.failLocked("tag %d (%s id %s, %s): %s\n  it was %+v\n  then %+v\n  so that it may be %+v",
			r.tag, r.peer.kind, r.id, r.tool, w.fitsLocked(r, outcomes[0]), before, events, outcomes)
		return
	}
	r.life = outcomes[i]
	if r.life.Cause != model.Nobody && before.Cause == model.Nobody {
		r.cancelled = time.Now()
	}
	if r.life.Fate != model.Open && !r.refused {
		r.peer.finished[r.id] = true
	}
}

// fitsLocked says what speaks against a life, "" if nothing does.
func (w *world) fitsLocked(r *request, l model.Life) string {
	if r.refused {
		if !r.blind && (len(r.answers) != 1 || !r.answers[0].refused) {
			return fmt.Sprintf("it must be refused, and is answered %+v", r.answers)
		}
		return ""
	}
	if k := r.work; k != nil && k.of == r {
		switch {
		case k.done != (l.Phase == model.Returned):
			return fmt.Sprintf("its handler has returned: %v", k.done)
		case k.done && k.fired == 0 && r.peer.kind.stateless():
			// The handler, whose token is not the request's own, returned before it was told.
		case k.cause != l.Cause:
			return fmt.Sprintf("its token says %d", k.cause)
		case k.fired > 1:
			return "its token has fired twice"
		case l.Phase == model.Running && k.asking != l.Asking:
			return fmt.Sprintf("its handler waits for the client: %v", k.asking)
		}
	}
	if r.blind {
		if len(r.answers) > 1 {
			return "it is answered twice"
		}
		return ""
	}
	var fate model.Fate
	if len(r.answers) > 0 {
		fate = r.answers[0].fate
	}
	want := l.Fate
	if want == model.Silent {
		want = model.Open // which looks the same
	}
	switch {
	case len(r.answers) > 1:
		return fmt.Sprintf("it is answered %d times", len(r.answers))
	case len(r.answers) == 1 && r.answers[0].refused:
		return "it is refused: " + r.answers[0].raw
	case fate != want:
		return fmt.Sprintf("its answer is %d", fate)
	case r.reports != l.Reports || r.questions != l.Questions || r.retracts != l.Retracts:
		return fmt.Sprintf("there came %d reports, %d questions, %d retracts", r.reports, r.questions, r.retracts)
	case r.peer.kind == httpStateless && l.Phase == model.Running && l.Fate == model.Cancelled:
		// The answer is there; an event stream over HTTP/1.1 ends when the handler does, on whose goroutine it is.
	case r.stream != nil && r.stream.ended != l.Settled():
		return fmt.Sprintf("its stream has ended: %v", r.stream.ended)
	}
	return ""
}

// conserveLocked: nobody waits for a slot that is free, and no more than that run.
func (w *world) conserveLocked() {
	if w.slots == 0 {
		return
	}
	running, queued := 0, 0
	for _, r := range w.requests {
		if r.life.HoldsSlot() {
			running++
		}
		if r.life.Phase == model.Queued && !r.refused {
			queued++
		}
	}
	if running > w.slots || queued > 0 && running < w.slots {
		w.failLocked("%d run and %d wait for %d slots", running, queued, w.slots)
	}
}

// countLocked: the server keeps what the model keeps, and nothing of what is over.
func (w *world) countLocked() {
	if w.err != nil {
		return
	}
	var want server.Stats
	inFlight := 0
	for _, r := range w.requests {
		if r.refused {
			continue
		}
		if r.life.Fate == model.Open {
			want.InFlight++
		}
		if (r.life.Phase == model.Running || r.life.Phase == model.Parked) && r.life.Cause != model.Nobody {
			want.Lingering++
		}
		if r.life.Phase == model.Parked && r.life.Cause == model.Nobody {
			want.Parked++
		}
		// What a closed session leaves behind is listed by no session.
		if r.life.Phase == model.Queued || r.life.Phase == model.Running && slices.Contains(w.peers, r.peer) ||
			r.life.Phase == model.Parked && r.life.Cause != model.Nobody && slices.Contains(w.peers, w.requests[r.workTag-1].peer) {
			inFlight++
		}
	}
	want.Sessions = 3
	got := w.s.Stats()
	got.Dropped, got.Unresponsive = 0, 0
	if got != want {
		w.failLocked("the server counts %+v, the model %+v", got, want)
	}
	if listed := len(w.s.InFlight()); listed != inFlight {
		w.failLocked("the server lists %d requests, the model has %d", listed, inFlight)
	}
}

// finish brings everything to its end, after which nothing may be left.
func (w *world) finish(drains bool, goroutines int) {
	if drains && w.err == nil {
		w.drain()
	}
	for _, d := range []time.Duration{parkTimeout + grace + time.Second, 0} {
		for round := 0; round < 100 && w.err == nil && w.bringOn(); round++ {
			w.settle()
		}
		w.advance(d)
	}
	if w.err == nil {
		for _, r := range w.requests {
			if !r.refused && r.life.Phase != model.Returned {
				w.fail("tag %d is never over: %+v", r.tag, r.life)
			}
		}
	}
	w.client.CloseIdleConnections()
	time.Sleep(time.Minute) // nothing comes late
	w.settle()
	if w.err == nil {
		w.nothingIsLeft(goroutines)
	}
}

// bringOn answers what is asked and lets handlers return. It reports whether there was something.
func (w *world) bringOn() bool {
	var asked []*question
	var left []*request
	w.mu.Lock()
	for _, q := range w.questions {
		if q.open && q.of.life.Asking && slices.Contains(w.peers, q.peer) {
			asked = append(asked, q)
		}
	}
	for _, r := range w.requests {
		if r.work != nil && r.work.of == r && !r.work.done && !r.work.asking {
			left = append(left, r)
		}
	}
	w.mu.Unlock()
	for _, q := range asked {
		w.answer(q.peer, q.id)
	}
	for _, r := range left {
		w.order(r, orderValue)
	}
	if len(asked)+len(left) > 0 {
		return true
	}
	for i, p := range w.peers {
		// A question that was lost with its stream is answered by nobody.
		if p.kind == httpSession && slices.ContainsFunc(w.requests, func(r *request) bool { return r.peer == p && r.life.Asking }) {
			w.end(i)
			return true
		}
	}
	return false
}

// nothingIsLeft looks for goroutines, and for anything that holds a request: a map, a timer, a list.
func (w *world) nothingIsLeft(goroutines int) {
	if n, stacks := goroutinesOfBubble(); n > goroutines {
		w.fail("%d goroutines are left of %d\n%s", n, goroutines, stacks)
		return
	}
	for range 2 { // pools keep things for one
		runtime.GC()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.workers {
		if k.held.Value() != nil {
			w.failLocked("something holds on to the request of tag %d", k.tag)
		}
	}
}

// goroutinesOfBubble counts the goroutines of the bubble, of which there is one at a time, and
// leaves out whatever the test's own process is up to.
func goroutinesOfBubble() (int, string) {
	stacks := make([]byte, 1<<20)
	all := string(stacks[:runtime.Stack(stacks, true)])
	n := 0
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, "goroutine ") && strings.Contains(line, "synctest bubble") {
			n++
		}
	}
	return n, all
}

// close ends server and clients.
func (w *world) close() {
	close(w.closing)
	for _, p := range w.peers {
		if !p.kind.http() {
			p.in.Close()
		}
	}
	_ = w.h.Close()
	w.client.CloseIdleConnections()
	_ = w.web.Close()
}

// report is what a failure prints.
func (w *world) report(s script) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nslots %d, drains %v, steps:", w.err, s.Slots, s.Drains)
	for i, step := range s.Steps {
		fmt.Fprintf(&b, "\n  %d %v", i+1, step)
	}
	b.WriteString("\nthe wire:\n  ")
	b.WriteString(strings.Join(w.lines, "\n  "))
	return b.String()
}

func (w *world) drain() {
	w.log("the server drains")
	for _, r := range w.requests {
		if !r.refused {
			r.events = append(r.events, cancelBy(model.Shutdown))
		}
	}
	w.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = w.s.Drain(ctx) // handlers that are left are not its fault
	})
	w.settle()
}

func cancelBy(c model.Cause) model.Event { return model.Event{Kind: model.Cancel, Cause: c} }
