package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A story is one telling of what happens when Stop is pressed. It plays the
// caller at the top of the chain, reads the database at its bottom, and says
// nothing that it has not looked up in one of the layers between.
type story struct {
	options   *options
	screen    *screen
	db        *database
	link      *link
	operation string
	started   time.Time

	board  size
	calls  int // of the tool; each has its own progress token
	stops  []silence
	checks []finding // what the story itself proves, beside the database's invariants
}

// tell tells the whole story and returns the exit status.
func tell(ctx context.Context, o *options, s *screen) (int, error) {
	where := o.db
	if where == "" {
		dir, err := os.MkdirTemp("", "longtool-")
		if err != nil {
			return exitUsage, err
		}
		defer os.RemoveAll(dir)
		where = filepath.Join(dir, "board.db")
	}
	db, err := openDatabase(ctx, where)
	if err != nil {
		return exitUsage, err
	}
	defer db.Close()
	t := &story{
		options: o, screen: s, db: db, started: time.Now(),
		operation: "close-stale-" + strings.ToLower(rand.Text()[:8]),
	}
	if err := t.fill(ctx); err != nil {
		return exitUsage, err
	}
	t.link, err = overStdio(ctx, where)
	if err != nil {
		return exitBroken, err
	}
	defer t.link.close()
	if err := t.parts(ctx); err != nil {
		return exitBroken, t.link.broken(err)
	}
	return t.prove(ctx)
}

func (t *story) parts(ctx context.Context) error {
	for _, part := range []func(context.Context) error{t.stopInTheStatement, t.stopInTheCommit, t.complete, t.repeat} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *story) fill(ctx context.Context) error {
	t.screen.heading("A job board")
	err := t.db.fill(ctx, t.options.postings, func(done, total int) {
		t.screen.bar(float64(done), float64(total), "filling it")
	})
	if err != nil {
		return err
	}
	if t.board, err = t.db.size(ctx); err != nil {
		return err
	}
	t.screen.say("%s stale postings and %s fresh ones, %s applicants, in %s.",
		thousands(t.board.stale), thousands(t.board.fresh), thousands(t.board.applicants), t.db.dialect)
	return t.breathe(ctx)
}

// firstStop is the number of batches after which Stop is pressed first;
// secondStop is the batch in whose commit it is pressed again.
func (t *story) firstStop() int { return min(4, t.batches()/3) }
func (t *story) secondStop() int {
	return t.firstStop() + 1 + min(2, (t.batches()-t.firstStop())/3)
}
func (t *story) batches() int { return (t.board.stale + t.options.batch - 1) / t.options.batch }

// batchOf is the batch that a report is about.
func (t *story) batchOf(p progress) int {
	return (int(p.done) + t.options.batch - 1) / t.options.batch
}

func (t *story) stopInTheStatement(ctx context.Context) error {
	version := "?"
	if hello := t.link.session.InitializeResult(); hello != nil {
		version = hello.ProtocolVersion
	}
	t.screen.heading("A long call, and Stop")
	t.screen.say("Started “longtool serve -%s” and connected to it with the official Go SDK's client (MCP %s). "+
		"Calling %s, operation %s: batches of %d, %s each.",
		t.link.transport, version, closeTool, t.operation, t.options.batch, short(t.options.delay))
	c, err := t.call(ctx, func(p progress) (time.Duration, bool) {
		// half of the way through the statement of the batch after
		ready := p.phase != phaseCommitting && t.batchOf(p) >= t.firstStop()
		return t.options.delay * 3 / 8, ready
	})
	if err != nil {
		return err
	}
	return t.afterStop(ctx, c)
}

func (t *story) stopInTheCommit(ctx context.Context) error {
	t.screen.heading("Retry with the same operation id, and a late Stop")
	t.screen.say("This time Stop is pressed while a batch is being committed.")
	c, err := t.call(ctx, func(p progress) (time.Duration, bool) {
		return 0, p.phase == phaseCommitting && t.batchOf(p) >= t.secondStop()
	})
	if err != nil {
		return err
	}
	return t.afterStop(ctx, c)
}

func (t *story) complete(ctx context.Context) error {
	t.screen.heading("Retry with the same operation id, to the end")
	c, err := t.call(ctx, nil)
	if err != nil {
		return err
	}
	t.screen.say("%s: %d batches, %s postings closed, %s notices delivered, in %d calls.", c.status.State,
		c.status.Batches, thousands(c.status.Closed), thousands(c.status.Notified), c.status.Runs)
	return t.breathe(ctx)
}

// repeat calls once more: a caller that never saw the answer would.
func (t *story) repeat(ctx context.Context) error {
	before, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	c, err := t.call(ctx, nil)
	if err != nil {
		return err
	}
	after, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	t.check("a further call with the same id changed nothing", c.status == *before && *after == *before,
		fmt.Sprintf("%d calls did the work", after.Runs))
	return nil
}

// A call is one call of the tool, and how it ended for the caller.
type call struct {
	token   string
	pressed time.Time // zero if Stop was not pressed
	ended   time.Time
	err     error
	status  Status // if it was answered
}

func (c *call) stopped() bool { return !c.pressed.IsZero() && c.err != nil }

// call calls the tool and draws its progress. After each report, and once
// before, stop says whether to press Stop, and how much later.
func (t *story) call(ctx context.Context, stop func(progress) (time.Duration, bool)) (*call, error) {
	t.calls++
	c := &call{token: fmt.Sprintf("call-%d", t.calls)}
	params := toolCall(closeTool, map[string]any{
		"operation_id": t.operation, "batch": t.options.batch, "delay": t.options.delay.String(),
	})
	params.SetProgressToken(c.token)

	ctx, cancel := context.WithCancel(ctx) // what the Stop button does
	defer cancel()
	ended := make(chan struct{})
	go func() {
		c.err = t.link.call(ctx, params, &c.status)
		c.ended = time.Now()
		close(ended)
	}()

	var button <-chan time.Time
	consider := func(p progress) {
		if stop == nil || button != nil {
			return
		}
		if after, press := stop(p); press {
			button = time.After(after)
		}
	}
	consider(progress{token: c.token})
	var last progress
	for {
		select {
		case p := <-t.link.progress:
			if p.token != c.token {
				continue // a report that was overtaken by its call's end
			}
			last = p
			t.screen.bar(p.done, p.total, fmt.Sprintf("batch %d of %d %s", t.batchOf(p), t.batches(), p.phase))
			consider(p)
		case <-button:
			button = make(chan time.Time) // it is pressed once
			c.pressed = time.Now()
			cancel()
		case <-ended:
			if c.stopped() {
				t.screen.stopped(fmt.Sprintf("Stop, %s", when(last, t.batchOf(last))))
				return c, nil
			}
			if c.err == nil {
				t.screen.bar(float64(c.status.Closed), float64(c.status.Total), c.status.State)
				t.screen.endBar()
			}
			return c, c.err
		}
	}
}

// when says in words what the last report before Stop was.
func when(last progress, batch int) string {
	switch last.phase {
	case phaseCommitting:
		return fmt.Sprintf("while batch %d is being committed", batch)
	case phaseClosed:
		return fmt.Sprintf("some time after batch %d was closed", batch)
	default:
		return "before the first report"
	}
}

// afterStop asks each layer what it knows, from the button down.
func (t *story) afterStop(ctx context.Context, c *call) error {
	if !c.stopped() {
		t.screen.say("The job was through before Stop could be pressed: give it more -postings, or more -delay.")
		return nil
	}
	if err := t.breathe(ctx); err != nil {
		return err
	}
	report, stop, err := t.reconcile(ctx, c)
	if err != nil {
		return err
	}
	wire := t.link.tap.silence(c.token)
	t.stops = append(t.stops, wire)
	rows, err := t.db.rowsOf(ctx, t.operation)
	if err != nil {
		return err
	}
	entries, err := t.db.entries(ctx, t.operation)
	if err != nil {
		return err
	}
	t.screen.layers([]layer{
		callerLayer(c), wireLayer(wire), serverLayer(stop), rows.layer(t.board), ledgerLayer(entries, stop),
	})
	t.screen.say("Asked by operation id, the server says: %s, with %d batches and %s postings. That is all a caller needs to go on.",
		report.Status.State, report.Status.Batches, thousands(report.Status.Closed))
	findings, err := t.db.audit(ctx, false)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if !f.holds() { // one that holds is worth no line before the end
			f.claim = "in between, " + f.claim
			t.checks = append(t.checks, f)
		}
	}
	return t.breathe(ctx)
}

// reconcile asks the server what was committed. It returns the server's own
// record of the stop as well; nil if the call had ended before the cancel came.
func (t *story) reconcile(ctx context.Context, c *call) (*Report, *Stop, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := t.link.tap.cancelSent(ctx, c.token); err != nil {
		return nil, nil, fmt.Errorf("the client sent no cancel: %w", err)
	}
	params := toolCall(statusTool, map[string]any{"operation_id": t.operation, "wait": "30s"})
	for {
		var report Report
		if err := t.link.call(ctx, params, &report); err != nil {
			return nil, nil, err
		}
		// The record is written when the tool has returned, a moment after it
		// gave its lease back.
		wire := t.link.tap.silence(c.token)
		for i := range report.Stops {
			if report.Stops[i].RequestID == wire.id {
				return &report, &report.Stops[i], t.compare(ctx, &report)
			}
		}
		if wire.answered {
			return &report, nil, t.compare(ctx, &report)
		}
		if err := pause(ctx, leasePoll); err != nil {
			return nil, nil, errors.New("the server has no record of the stop")
		}
	}
}

func (t *story) compare(ctx context.Context, report *Report) error {
	status, err := t.db.status(ctx, t.operation)
	if err == nil {
		t.check("the server's reports equal the database", report.Status == *status, "")
	}
	return err
}

func (t *story) check(claim string, holds bool, detail string) {
	f := finding{claim: claim, detail: detail}
	if !holds {
		f.wrong = 1
	}
	t.checks = append(t.checks, f)
}

// prove prints a line for each invariant; one that does not hold ends the
// program with status 1.
func (t *story) prove(ctx context.Context) (int, error) {
	t.screen.heading("Proof")
	findings, err := t.db.audit(ctx, true)
	if err != nil {
		return exitBroken, err
	}
	silent := finding{claim: "nothing on the wire after the cancel", detail: fmt.Sprintf("%d calls cancelled", len(t.stops))}
	for _, s := range t.stops {
		silent.wrong += s.after
	}
	findings = append(findings, silent)
	findings = append(findings, summarized(t.checks)...)
	status := exitOK
	for _, f := range findings {
		detail := f.detail
		if !f.holds() {
			status = exitBroken
			detail = strings.TrimSpace(fmt.Sprintf("%s (%d wrong)", detail, f.wrong))
		}
		t.screen.verdict(f.holds(), f.claim, detail)
	}
	t.screen.say("")
	if status == exitOK {
		t.screen.say("Stop was pressed %d times, in %s. Nothing was lost and nothing was done twice.",
			len(t.stops), time.Since(t.started).Round(100*time.Millisecond))
	}
	return status, nil
}

// summarized puts findings with the same claim into one line.
func summarized(findings []finding) []finding {
	var summary []finding
	for _, f := range findings {
		found := false
		for i := range summary {
			if summary[i].claim == f.claim {
				summary[i].wrong += f.wrong
				found = true
			}
		}
		if !found {
			summary = append(summary, f)
		}
	}
	return summary
}

// breathe gives a reader time, when there is one.
func (t *story) breathe(ctx context.Context) error {
	if !t.screen.live || t.screen.quiet {
		return ctx.Err()
	}
	return pause(ctx, 800*time.Millisecond)
}
