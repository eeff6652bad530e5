package cancellation_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rounds is how often two goroutines race for one request.
const rounds = 5000

// race runs both at the same time, as nearly as can be had.
func race(a, b func()) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for _, f := range []func(){a, b} {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			f()
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

func TestInvariant_I1_CancelAndFinishHaveOneWinner(t *testing.T) {
	wins := map[bool]int{}
	for range rounds {
		s := cancellation.New(t.Context())
		var ran atomic.Int32
		s.Token().OnCancel(func(*cancellation.Error) { ran.Add(1) })
		var accepted bool
		var answer *cancellation.Error
		race(
			func() { accepted = s.Cancel(cancellation.Peer, "stop") },
			func() { answer = s.Finish() },
		)
		s.Wait()
		require.Equal(t, accepted, answer != nil, "either the answer is owed or the cancel was accepted")
		require.Same(t, answer, s.Finish(), "Finish says the same again")
		require.Same(t, answer, s.Requested())
		require.Equal(t, accepted, ran.Load() == 1)
		require.Equal(t, accepted, s.Token().Cancelled())
		require.ErrorIs(t, s.Context().Err(), context.Canceled, "either way the context is over")
		wins[accepted]++
	}
	t.Logf("cancel won %d times, finish %d times", wins[true], wins[false])
}

func TestInvariant_I1_TwoCancelsHaveOneWinner(t *testing.T) {
	for range rounds {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		var first, second bool
		race(
			func() { first = s.Cancel(cancellation.Peer, "first") },
			func() { second = s.Cancel(cancellation.Shutdown, "second") },
		)
		require.NotEqual(t, first, second)
		want := cancellation.Error{Origin: cancellation.Peer, Reason: "first"}
		if second {
			want = cancellation.Error{Origin: cancellation.Shutdown, Reason: "second"}
		}
		require.Equal(t, want, *s.Finish())
	}
}

func TestInvariant_I1_ALaterCancelChangesNothing(t *testing.T) {
	s := cancellation.New(t.Context())
	require.True(t, s.Cancel(cancellation.Peer, "first"))
	before, _ := s.Times()
	require.False(t, s.Cancel(cancellation.Timeout, "second"))
	after, _ := s.Times()
	require.Equal(t, before, after)
	require.Equal(t, &cancellation.Error{Origin: cancellation.Peer, Reason: "first"}, s.Finish())

	s = cancellation.New(t.Context())
	require.Nil(t, s.Finish())
	require.False(t, s.Cancel(cancellation.Peer, "late"))
	require.Nil(t, s.Finish())
	require.Nil(t, s.Requested())
}

func TestInvariant_I2_DoneIsClosedExactlyWhenErrIsSet(t *testing.T) {
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	for _, end := range []func(*cancellation.Source){
		func(s *cancellation.Source) { s.Cancel(cancellation.Peer, "stop") },
		func(s *cancellation.Source) { s.Cancel(cancellation.Timeout, "slow") },
		func(s *cancellation.Source) { s.Finish() },
	} {
		for i := range rounds / 3 {
			s := cancellation.New(context.WithoutCancel(t.Context()))
			token, ctx := s.Token(), s.Context()
			if i%2 == 0 {
				token.Done() // else it is made in the race
			}
			race(
				func() { end(s) },
				func() {
					for ; token.Err() == nil; runtime.Gosched() {
						// If the channel is closed, the error must be there.
						if closed(token.Done()) && (token.Err() == nil || ctx.Err() == nil) {
							t.Error("done is closed, and there is no error")
							return
						}
					}
					if !closed(token.Done()) || !closed(ctx.Done()) {
						t.Error("there is an error, and done is open")
					}
				},
			)
			require.False(t, t.Failed())
			cause := context.Cause(ctx)
			require.Equal(t, cause, token.Err())
			s.Cancel(cancellation.Shutdown, "later")
			s.Finish()
			require.Equal(t, cause, context.Cause(ctx), "the cause never changes")
		}
	}
}

func TestInvariant_I3_HooksNeverRunOnFinish(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		hook := func(*cancellation.Error) { t.Error("hook ran, and nobody cancelled") }
		stop := s.Token().OnCancel(hook)
		require.Nil(t, s.Finish())
		stopLate := s.Token().OnCancel(hook)
		s.Cancel(cancellation.Peer, "late")
		synctest.Wait()
		s.Wait()
		require.True(t, stop(), "it has not run and never will")
		require.True(t, stopLate())
	})
}

func TestInvariant_I3_HooksRunOnceAfterDelivery(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		var runs atomic.Int32
		var given atomic.Pointer[cancellation.Error]
		hook := func(e *cancellation.Error) {
			assert.Same(t, e, s.Token().Err(), "hooks see a delivered cancel")
			runs.Add(1)
			given.Store(e)
		}
		for range 3 {
			s.Token().OnCancel(hook)
		}
		synctest.Wait()
		require.Zero(t, runs.Load())
		s.Cancel(cancellation.Peer, "stop")
		s.Cancel(cancellation.Peer, "again")
		s.Finish()
		s.Wait()
		require.EqualValues(t, 3, runs.Load())
		require.Same(t, s.Requested(), given.Load())

		s.Token().OnCancel(hook) // delivered already
		s.Wait()
		require.EqualValues(t, 4, runs.Load())
	})
}

func TestInvariant_I4_HooksRunOnGoroutinesOfTheirOwn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		release := make(chan struct{})
		var started atomic.Int32
		for range 10 {
			s.Token().OnCancel(func(*cancellation.Error) {
				// Every call on the same request would deadlock under a lock.
				s.Cancel(cancellation.Peer, "")
				s.Token().OnCancel(func(*cancellation.Error) {})()
				s.Finish()
				started.Add(1)
				<-release
			})
		}
		require.True(t, s.Cancel(cancellation.Peer, "stop"), "returns though all hooks block")
		synctest.Wait()
		require.EqualValues(t, 10, started.Load(), "one that blocks delays no other")
		close(release)
		s.Wait()
	})
}

func TestInvariant_I5_OpenShieldDefersDelivery(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	token := s.Token()
	derived, cancel := context.WithTimeout(s.Context(), time.Hour)
	defer cancel()
	hook := make(chan struct{})
	token.OnCancel(func(*cancellation.Error) { close(hook) })
	err := cancellation.Shield(derived, func(ctx context.Context) error {
		require.True(t, s.Cancel(cancellation.Peer, "stop"))
		require.NotNil(t, s.Requested(), "accepted at once")
		require.NotNil(t, s.Finish(), "a cancel that waits has won as well")
		for _, c := range []context.Context{ctx, derived, s.Context()} {
			require.NoError(t, c.Err())
			require.NoError(t, context.Cause(c))
			require.NoError(t, cancellation.Checkpoint(c))
		}
		require.False(t, token.Cancelled())
		require.NoError(t, token.Err())
		select {
		case <-hook:
			t.Error("hook ran inside the shield")
		case <-token.Done():
			t.Error("done closed inside the shield")
		default:
		}
		return nil
	})
	require.NoError(t, err, "the commit went through")
	require.ErrorIs(t, derived.Err(), context.Canceled, "delivered when Shield returns")
	require.True(t, token.Cancelled())
	<-hook
	s.Wait()
}

func TestInvariant_I5_LastShieldOutDelivers(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	inside, leave := make(chan int), []chan struct{}{make(chan struct{}), make(chan struct{})}
	var done [2]chan struct{}
	for i := range 2 {
		done[i] = make(chan struct{})
		go func() {
			defer close(done[i])
			assert.NoError(t, cancellation.Shield(s.Context(), func(context.Context) error {
				inside <- i
				<-leave[i]
				return nil
			}))
		}()
		<-inside
	}
	require.True(t, s.Cancel(cancellation.Peer, "stop"))
	close(leave[0])
	<-done[0]
	require.False(t, s.Token().Cancelled(), "one shield is open still")
	close(leave[1])
	<-done[1]
	require.True(t, s.Token().Cancelled())
}

func TestInvariant_I5_LastShieldOutDeliversOnPanicAndGoexit(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	require.PanicsWithValue(t, "boom", func() {
		_ = cancellation.Shield(s.Context(), func(context.Context) error {
			s.Cancel(cancellation.Peer, "stop")
			panic("boom")
		})
	})
	require.True(t, s.Token().Cancelled())

	s = cancellation.New(context.WithoutCancel(t.Context()))
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cancellation.Shield(s.Context(), func(context.Context) error {
			s.Cancel(cancellation.Peer, "stop")
			goexit()
			return nil
		})
	}()
	<-exited
	require.True(t, s.Token().Cancelled())
}

func TestInvariant_I6_NoShieldOpensAfterAnAcceptedCancel(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	never := func(context.Context) error {
		t.Error("a new shield opened after the cancel")
		return nil
	}
	err := cancellation.Shield(s.Context(), func(ctx context.Context) error {
		s.Cancel(cancellation.Peer, "stop")
		// Elsewhere in the request, where the open shield is not around the caller.
		require.Same(t, s.Requested(), cancellation.Shield(s.Context(), never))
		_, observed := s.Times()
		require.False(t, observed.IsZero(), "a refused shield has seen the cancel")

		nested := false
		require.NoError(t, cancellation.Shield(ctx, func(context.Context) error {
			nested = true
			return nil
		}))
		require.True(t, nested, "a shield inside is part of the commit that is under way")
		return nil
	})
	require.NoError(t, err)
	require.Same(t, s.Requested(), cancellation.Shield(s.Context(), never))
}

func TestInvariant_I6_ALeftShieldIsNoWayIn(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	var kept context.Context
	require.NoError(t, cancellation.Shield(s.Context(), func(ctx context.Context) error {
		kept = ctx
		return nil
	}))
	refused := func() {
		require.Same(t, s.Requested(), cancellation.Shield(kept, func(context.Context) error {
			t.Error("the shield around this context has closed")
			return nil
		}))
	}
	require.NoError(t, cancellation.Shield(s.Context(), func(context.Context) error {
		s.Cancel(cancellation.Peer, "stop")
		refused() // another shield is open, but not around kept
		return nil
	}))
	refused()
}

func TestInvariant_I7_ChildKeepsOriginAndReason(t *testing.T) {
	type key struct{}
	for _, origin := range []cancellation.Origin{cancellation.Peer, cancellation.Timeout, cancellation.Shutdown} {
		parent := cancellation.New(context.WithoutCancel(t.Context()))
		child := cancellation.New(context.WithValue(parent.Context(), key{}, 1))
		grandchild := cancellation.New(child.Context())
		hook := make(chan *cancellation.Error, 1)
		grandchild.Token().OnCancel(func(e *cancellation.Error) { hook <- e })

		require.True(t, parent.Cancel(origin, "stop"))
		require.True(t, grandchild.Token().Cancelled(), "in the same call")
		require.Equal(t, &cancellation.Error{Origin: origin, Reason: "stop"}, <-hook)
		require.Equal(t, parent.Requested(), child.Finish())
		require.Equal(t, parent.Context().Err(), grandchild.Context().Err())
		require.False(t, child.Cancel(cancellation.Peer, "again"))
	}
}

func TestInvariant_I8_PollsDoNotAllocate(t *testing.T) {
	type key struct{}
	open := cancellation.New(context.WithoutCancel(t.Context()))
	cancelled := cancellation.New(context.WithoutCancel(t.Context()))
	cancelled.Cancel(cancellation.Peer, "stop")
	finished := cancellation.New(context.WithoutCancel(t.Context()))
	finished.Finish()
	for name, s := range map[string]*cancellation.Source{"open": open, "cancelled": cancelled, "finished": finished} {
		token, ctx := s.Token(), s.Context()
		wrapped := context.WithValue(ctx, key{}, 1)
		derived, cancel := context.WithCancel(wrapped)
		defer cancel()
		for what, poll := range map[string]func(){
			"Cancelled":          func() { token.Cancelled() },
			"Err":                func() { _ = token.Err() },
			"Done":               func() { token.Done() },
			"ctx.Err":            func() { _ = ctx.Err() },
			"Context":            func() { s.Context() },
			"FromContext":        func() { cancellation.FromContext(wrapped) },
			"Requested":          func() { s.Requested() },
			"Checkpoint":         func() { _ = cancellation.Checkpoint(ctx) },
			"Checkpoint wrapped": func() { _ = cancellation.Checkpoint(wrapped) },
			"Checkpoint derived": func() { _ = cancellation.Checkpoint(derived) },
		} {
			assert.Zerof(t, testing.AllocsPerRun(100, poll), "%s of a request that is %s", what, name)
		}
	}
	parent := context.WithoutCancel(t.Context())
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		s := cancellation.New(parent)
		_ = cancellation.Checkpoint(s.Context())
		s.Finish()
	}), 1.0, "a request that nobody waits for")
}

func TestErrorsOfOthersAreNotCancellations(t *testing.T) {
	require.NotErrorIs(t, context.Canceled, cancellation.ErrCancelled)
	require.NotErrorIs(t, cancellation.ErrFinished, cancellation.ErrCancelled)
	require.ErrorIs(t, cancellation.ErrFinished, context.Canceled)
	require.NotErrorIs(t, errors.New("cancelled"), cancellation.ErrCancelled)
}
