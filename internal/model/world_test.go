package model_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
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

// failed tells whether a fault was found. A client that reads may find one at any time.
func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

func (w *world) failLocked(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
		w.logLocked("FAULT: %v", w.err)
	}
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
