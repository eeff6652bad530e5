package cancellationtest

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/cancellation/internal/probe"
)

// attempt is one run under way.
type attempt struct {
	run    Run
	n      int // the checkpoint to cancel at; 0: none
	source *cancellation.Source
	label  string // of every goroutine of the run

	passed atomic.Int64 // checkpoints so far
	where  atomic.Int32 // the probe.Point at which it was cancelled
	ended  atomic.Bool  // set when the handler has returned

	err      error  // written before done is closed
	panicked string // likewise: value and stack
	exited   bool   // likewise: left by runtime.Goexit, as t.FailNow does
	hookDied atomic.Pointer[string]
	done     chan struct{}
}

// try makes one run, checks it, cleans up and looks for leaks.
func try(t testing.TB, n int, setup func(testing.TB) Run) Outcome {
	t.Helper()
	a := &attempt{n: n, label: newLabel(), done: make(chan struct{})}
	scope := newScope(t, a)
	over := false
	defer func() {
		scope.close()
		if !over {
			return // on the way out of the test: what failed has been said
		}
		if left := leaked(a.label); left != "" {
			scope.Errorf("goroutines are left behind:\n%s", left)
		}
	}()
	a.run = setup(scope)
	if a.run.Handler == nil {
		scope.Fatalf("there is no handler to run")
	}
	out := a.perform(scope)
	if a.run.Check != nil {
		a.run.Check(scope, out)
	}
	over = true
	return out
}

// perform runs the handler and reports what is wrong whoever's handler it is.
func (a *attempt) perform(t testing.TB) Outcome {
	t.Helper()
	a.source = cancellation.New(context.WithoutCancel(t.Context()))
	a.source.SetPanicHandler(func(value any, stack []byte) {
		text := fmt.Sprintf("%v\n%s", value, stack)
		a.hookDied.CompareAndSwap(nil, &text)
	})
	ctx, release := probe.With(a.source.Context(), a.pass)
	defer release()

	limit := a.run.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	go a.handle(ctx)
	select {
	case <-a.done:
	case <-timer.C:
		what := "the handler is"
		if a.ended.Load() {
			what = "the handler has returned, but hooks are"
		}
		t.Fatalf("%s still running after %v:\n%s", what, limit, goroutines(a.label))
	}
	switch {
	case a.panicked != "":
		t.Fatalf("the handler panicked: %s", a.panicked)
	case a.exited:
		t.FailNow() // the handler called FailNow on a goroutine that is not the test's
	}
	if text := a.hookDied.Load(); text != nil {
		t.Errorf("a hook panicked: %s", *text)
	}
	out := a.outcome()
	if out.Passed < a.n {
		t.Fatalf("the handler ended after %d checkpoints (error: %v)", out.Passed, out.Err)
	}
	return out
}

// handle runs the handler and waits for its hooks. All goroutines started from
// here inherit the label.
func (a *attempt) handle(ctx context.Context) {
	defer close(a.done)
	pprof.Do(ctx, pprof.Labels(labelKey, a.label), func(ctx context.Context) {
		a.exited = true
		defer func() {
			if value := recover(); value != nil {
				a.panicked = fmt.Sprintf("%v\n%s", value, debug.Stack())
			}
			a.source.Finish()
			a.ended.Store(true)
			a.source.Wait()
		}()
		a.err = a.run.Handler(ctx)
		a.exited = false
	})
}

// pass counts a checkpoint, and cancels at the right one.
func (a *attempt) pass(p probe.Point) {
	if a.passed.Add(1) != int64(a.n) {
		return
	}
	a.where.Store(int32(p))
	origin, reason := a.run.Origin, a.run.Reason
	if origin == 0 {
		origin = cancellation.Peer
	}
	if reason == "" {
		reason = "cancelled by a test"
	}
	a.source.Cancel(origin, reason)
}

func (a *attempt) outcome() Outcome {
	out := Outcome{
		Checkpoint: a.n,
		Passed:     int(a.passed.Load()),
		Cancelled:  a.source.Requested(),
		Err:        a.err,
	}
	if p := probe.Point(a.where.Load()); p != 0 {
		out.Where = p.String()
	}
	return out
}

// String names the run in failures.
func (a *attempt) String() string {
	if a.n == 0 {
		return "uncancelled run"
	}
	text := "cancelled at checkpoint " + strconv.Itoa(a.n)
	if p := probe.Point(a.where.Load()); p != 0 && p != probe.Checkpoint {
		text += " (" + p.String() + ")"
	}
	return text
}
