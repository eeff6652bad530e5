package cancellationtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/cancellation/cancellationtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// store is a job's state: rows closed, and what the ledger says about it.
type store struct{ rows, ledger int }

// job closes three batches. A sound one writes both sides inside a shield.
func job(ctx context.Context, s *store, sound bool) error {
	for range 3 {
		if err := cancellation.Checkpoint(ctx); err != nil {
			return err
		}
		write := func(ctx context.Context) error {
			s.rows++
			if err := cancellation.Checkpoint(ctx); err != nil {
				return err
			}
			s.ledger++
			return nil
		}
		if sound {
			if err := cancellation.Shield(ctx, write); err != nil {
				return err
			}
		} else if err := write(ctx); err != nil {
			return err
		}
	}
	return nil
}

func runOf(sound bool, outcomes *[]cancellationtest.Outcome) func(testing.TB) cancellationtest.Run {
	return func(testing.TB) cancellationtest.Run {
		s := &store{}
		return cancellationtest.Run{
			Handler: func(ctx context.Context) error { return job(ctx, s, sound) },
			Check: func(t testing.TB, o cancellationtest.Outcome) {
				assert.Equal(t, s.rows, s.ledger, "ledger equals rows")
				if outcomes != nil {
					*outcomes = append(*outcomes, o)
				}
			},
		}
	}
}

func TestEveryCancelsAtEachCheckpointInTurn(t *testing.T) {
	var got []cancellationtest.Outcome
	cancellationtest.Every(t, runOf(true, &got))
	// Per batch: the checkpoint, both sides of the shield's opening, the one inside.
	where := []string{"checkpoint", "before a shield", "inside a shield", "checkpoint"}
	require.Len(t, got, 1+3*len(where))
	require.Equal(t, cancellationtest.Outcome{Passed: 12}, got[0])
	for n, o := range got[1:] {
		require.Equal(t, n+1, o.Checkpoint)
		require.Equal(t, where[n%4], o.Where)
		require.Equal(t, cancellation.Peer, o.Cancelled.Origin)
		// A cancel inside a shield of the last batch finds the work done.
		if n < 10 {
			require.Same(t, o.Cancelled, o.Err, n)
		} else {
			require.NoError(t, o.Err, n)
		}
		require.Less(t, o.Passed-o.Checkpoint, 4, "the handler stops at the next point at the latest")
	}
}

func TestEveryReportsABrokenInvariant(t *testing.T) {
	r := record(t, func(t testing.TB) { cancellationtest.Every(t, runOf(false, nil)) })
	require.Len(t, r.failures, 3)
	for i, failure := range r.failures { // between rows and ledger of each batch
		require.Contains(t, failure, fmt.Sprintf("cancelled at checkpoint %d: ", 2*(i+1)))
		require.Contains(t, failure, "ledger equals rows")
	}
	require.False(t, r.stopped, "the other checkpoints are tried as well")
}

func TestAtCancelsAtTheGivenCheckpoint(t *testing.T) {
	for n := 1; n <= 3; n++ {
		steps := 0
		out := cancellationtest.At(t, n, func(ctx context.Context) error {
			for {
				if err := cancellation.Checkpoint(ctx); err != nil {
					return fmt.Errorf("step %d: %w", steps, err)
				}
				steps++
			}
		})
		require.Equal(t, n-1, steps)
		require.Equal(t, n, out.Passed)
		require.ErrorIs(t, out.Err, cancellation.ErrCancelled)
	}
}

func TestAtKeepsOriginAndReason(t *testing.T) {
	out := cancellationtest.Run{
		Handler: cancellation.Checkpoint,
		Origin:  cancellation.Timeout,
		Reason:  "limit",
	}.At(t, 1)
	require.Equal(t, &cancellation.Error{Origin: cancellation.Timeout, Reason: "limit"}, out.Cancelled)
	require.ErrorIs(t, out.Err, context.DeadlineExceeded)
}

func TestCheckpointsOfDerivedContextsAndGoroutinesCount(t *testing.T) {
	cancellationtest.Every(t, func(testing.TB) cancellationtest.Run {
		return cancellationtest.Run{
			Handler: func(ctx context.Context) error {
				child := cancellation.New(ctx)
				defer child.Finish()
				derived, cancel := context.WithTimeout(child.Context(), time.Hour)
				defer cancel()
				errs := make(chan error)
				for range 4 {
					go func() { errs <- cancellation.Checkpoint(derived) }()
				}
				var all error
				for range 4 {
					all = errors.Join(all, <-errs)
				}
				return all
			},
			Check: func(t testing.TB, o cancellationtest.Outcome) {
				assert.Equal(t, 4, o.Passed)
				assert.Equal(t, o.Checkpoint != 0, errors.Is(o.Err, cancellation.ErrCancelled))
			},
		}
	})
}

func TestFaultsOfTheHandlerAreReported(t *testing.T) {
	var stuck chan struct{} // one per bubble
	for name, c := range map[string]struct {
		run  cancellationtest.Run
		want string
	}{
		"panics when cancelled": {cancellationtest.Run{Handler: func(ctx context.Context) error {
			if err := cancellation.Checkpoint(ctx); err != nil {
				panic("boom")
			}
			return nil
		}}, "cancelled at checkpoint 1: the handler panicked: boom"},
		"ignores the cancel": {cancellationtest.Run{Limit: time.Minute, Handler: func(ctx context.Context) error {
			if cancellation.Checkpoint(ctx) != nil {
				<-stuck
			}
			return nil
		}}, "cancelled at checkpoint 1: the handler is still running after 1m0s"},
		"has a hook that hangs": {cancellationtest.Run{Limit: time.Minute, Handler: func(ctx context.Context) error {
			cancellation.FromContext(ctx).OnCancel(func(*cancellation.Error) { <-stuck })
			return cancellation.Checkpoint(ctx)
		}}, "cancelled at checkpoint 1: the handler has returned, but hooks are still running"},
		"has a hook that panics": {cancellationtest.Run{Handler: func(ctx context.Context) error {
			cancellation.FromContext(ctx).OnCancel(func(*cancellation.Error) { panic("boom") })
			return cancellation.Checkpoint(ctx)
		}}, "cancelled at checkpoint 1: a hook panicked: boom"},
		"leaves a goroutine": {cancellationtest.Run{Handler: func(ctx context.Context) error {
			err := cancellation.Checkpoint(ctx)
			if err != nil {
				go func() { <-stuck }()
			}
			return err
		}}, "cancelled at checkpoint 1: goroutines are left behind:\n1 @"},
		"fails uncancelled": {cancellationtest.Run{Handler: func(ctx context.Context) error {
			return errors.Join(cancellation.Checkpoint(ctx), errors.New("broken"))
		}}, "uncancelled run: handler failed, though nobody cancelled it: broken"},
		"has no checkpoint": {cancellationtest.Run{Handler: func(context.Context) error {
			return nil
		}}, "uncancelled run: handler passed no checkpoint"},
		"is not there": {cancellationtest.Run{}, "uncancelled run: there is no handler to run"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck = make(chan struct{})
				defer close(stuck)
				r := record(t, func(t testing.TB) {
					cancellationtest.Every(t, func(testing.TB) cancellationtest.Run { return c.run })
				})
				require.Len(t, r.failures, 1)
				require.Contains(t, r.text(), c.want)
			})
		})
	}
}

func TestAHandlerThatTakesFewerCheckpointsIsReported(t *testing.T) {
	runs := 0
	r := record(t, func(t testing.TB) {
		cancellationtest.Every(t, func(testing.TB) cancellationtest.Run {
			runs++
			return cancellationtest.Run{Handler: func(ctx context.Context) error {
				for range 3 - runs {
					_ = cancellation.Checkpoint(ctx)
				}
				return nil
			}}
		})
	})
	require.Equal(t, []string{"cancelled at checkpoint 2: the handler ended after 0 checkpoints (error: <nil>)"}, r.failures)
	r = record(t, func(t testing.TB) { cancellationtest.At(t, 2, cancellation.Checkpoint) })
	require.Len(t, r.failures, 1)
	r = record(t, func(t testing.TB) { cancellationtest.At(t, 0, cancellation.Checkpoint) })
	require.Equal(t, []string{"checkpoints are counted from 1, not 0"}, r.failures)
}

func TestFailNowInTheHandlerEndsTheTest(t *testing.T) {
	r := record(t, func(t testing.TB) {
		cancellationtest.At(t, 1, func(ctx context.Context) error {
			require.NoError(t, cancellation.Checkpoint(ctx))
			return nil
		})
		t.Errorf("not reached")
	})
	require.True(t, r.stopped)
	require.Len(t, r.failures, 1)
	require.Contains(t, r.text(), "cancelled by peer")
}

func TestEveryRunHasItsOwnSetupAndCleanup(t *testing.T) {
	var events []string
	cancellationtest.Every(t, func(t testing.TB) cancellationtest.Run {
		ctx := t.Context()
		t.Cleanup(func() {
			events = append(events, fmt.Sprint("first in, context ended: ", ctx.Err() != nil))
		})
		t.Cleanup(func() { events = append(events, "last in") })
		events = append(events, "setup")
		return cancellationtest.Run{
			Handler: cancellation.Checkpoint,
			Check:   func(testing.TB, cancellationtest.Outcome) { events = append(events, "check") },
		}
	})
	once := []string{"setup", "check", "last in", "first in, context ended: true"}
	require.Equal(t, append(once, once...), events)
}

func TestCleanupsAreDoneWhenCheckStopsTheTest(t *testing.T) {
	cleaned := 0
	r := record(t, func(t testing.TB) {
		cancellationtest.Every(t, func(t testing.TB) cancellationtest.Run {
			t.Cleanup(func() { cleaned++ })
			t.Cleanup(func() { cleaned++; t.FailNow() })
			return cancellationtest.Run{
				Handler: cancellation.Checkpoint,
				Check:   func(t testing.TB, _ cancellationtest.Outcome) { t.Fatal("no") },
			}
		})
	})
	require.Equal(t, []string{"uncancelled run: no\n"}, r.failures)
	require.Equal(t, 2, cleaned)
}

func TestGoroutinesEndedByCleanupsAreNoLeak(t *testing.T) {
	cancellationtest.Every(t, func(t testing.TB) cancellationtest.Run {
		quit := make(chan struct{})
		t.Cleanup(func() { close(quit) })
		return cancellationtest.Run{Handler: func(ctx context.Context) error {
			go func() { <-quit }()
			return cancellation.Checkpoint(ctx)
		}}
	})
}

func TestGoroutinesOfOthersAreNoLeak(t *testing.T) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	var others atomic.Int32
	begin := make(chan struct{})
	go func() { // another test, so to say
		defer close(stopped)
		for range begin {
			others.Add(1)
			go func() { <-quit; others.Add(-1) }()
		}
	}()
	cancellationtest.Every(t, func(testing.TB) cancellationtest.Run {
		return cancellationtest.Run{Handler: func(ctx context.Context) error {
			begin <- struct{}{}
			return cancellation.Checkpoint(ctx)
		}}
	})
	close(begin)
	<-stopped
	require.EqualValues(t, 2, others.Load())
	close(quit)
}

func TestEveryWorksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		runs := 0
		cancellationtest.Every(t, func(testing.TB) cancellationtest.Run {
			runs++
			return cancellationtest.Run{
				Limit: time.Hour,
				Handler: func(ctx context.Context) error {
					for range 3 {
						time.Sleep(time.Minute)
						if err := cancellation.Checkpoint(ctx); err != nil {
							return err
						}
					}
					return nil
				},
			}
		})
		require.Equal(t, 4, runs)
		require.Equal(t, 9*time.Minute, time.Since(start))
	})
}
