package cancellationtest

import (
	"context"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// DefaultLimit is how long one run may take unless [Run.Limit] says otherwise.
const DefaultLimit = 10 * time.Second

// Run is one run of a handler, and what must hold after it.
type Run struct {
	// Handler is the work under test. Its ctx carries a token. Required.
	Handler func(ctx context.Context) error
	// Check is called after the run, on the test's goroutine. Failures reported
	// through its t say at which checkpoint the handler was cancelled. Nil checks
	// nothing but what every run is checked for.
	Check func(t testing.TB, o Outcome)
	// Origin is who cancels. Zero means cancellation.Peer.
	Origin cancellation.Origin
	// Reason is the reason given. Empty means "cancelled by a test".
	Reason string
	// Limit is how long the run may take, hooks included; in a testing/synctest
	// bubble, on the bubble's clock. Zero means DefaultLimit.
	Limit time.Duration
}

// Outcome is what a run did.
type Outcome struct {
	// Checkpoint is the number, from 1, of the checkpoint at which the handler
	// was to be cancelled; 0 in the uncancelled run.
	Checkpoint int
	// Where says what that checkpoint is: "checkpoint", "before a shield" or
	// "inside a shield"; empty if it was not reached.
	Where string
	// Passed counts all checkpoints that the run passed, those after the cancel
	// included.
	Passed int
	// Cancelled is the cancel, nil in the uncancelled run.
	Cancelled *cancellation.Error
	// Err is what the handler returned.
	Err error
}

// At runs handler once and cancels it at its n-th checkpoint, counted from 1. It
// fails the test if there is no such checkpoint.
func At(t testing.TB, n int, handler func(ctx context.Context) error) Outcome {
	t.Helper()
	return Run{Handler: handler}.At(t, n)
}

// At makes the run, cancelling at the n-th checkpoint, counted from 1. It fails the
// test if there is no such checkpoint.
func (r Run) At(t testing.TB, n int) Outcome {
	t.Helper()
	if n < 1 {
		t.Fatalf("checkpoints are counted from 1, not %d", n)
	}
	return try(t, n, func(testing.TB) Run { return r })
}

// Every calls setup and makes the run that it returns, first without a cancel and
// then once for each checkpoint that was passed, cancelling there. Every run has
// a setup of its own; clean-ups that setup registers with its t are done after the
// run, and that t's context ends with it.
//
// The uncancelled run must succeed and pass at least one checkpoint. The others must
// pass as many checkpoints as they need to be cancelled: a handler whose number of
// checkpoints depends on chance is not tested by chance.
func Every(t testing.TB, setup func(t testing.TB) Run) {
	t.Helper()
	all := try(t, 0, setup)
	switch {
	case all.Err != nil:
		t.Fatalf("uncancelled run: handler failed, though nobody cancelled it: %v", all.Err)
	case all.Passed == 0:
		t.Fatalf("uncancelled run: handler passed no checkpoint, so nothing can be tested")
	}
	for n := 1; n <= all.Passed; n++ {
		try(t, n, setup)
	}
}
