package cancellation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errOwn = errors.New("own")

func TestShieldReturnsWhatItsFunctionDoes(t *testing.T) {
	s := cancellation.New(t.Context())
	defer s.Finish()
	ctx := context.WithValue(s.Context(), valueKey{}, "v")
	require.Equal(t, errOwn, cancellation.Shield(ctx, func(inner context.Context) error {
		assert.Equal(t, "v", inner.Value(valueKey{}))
		assert.Equal(t, ctx.Done(), inner.Done(), "the same scope")
		assert.Same(t, s.Token(), cancellation.FromContext(inner))
		return errOwn
	}))
	require.NoError(t, s.Context().Err(), "nothing was cancelled")
}

func TestShieldWithoutATokenJustRuns(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	require.Equal(t, errOwn, cancellation.Shield(ctx, func(context.Context) error { return errOwn }))
	cancel(errors.New("over"))
	require.EqualError(t, cancellation.Shield(ctx, func(context.Context) error {
		t.Error("ran with a context that is over")
		return nil
	}), "over")
}

func TestShieldChecksContextsOwnEnd(t *testing.T) {
	s := cancellation.New(t.Context())
	defer s.Finish()
	ctx, cancel := context.WithCancelCause(s.Context())
	cancel(errOwn)
	require.Equal(t, errOwn, cancellation.Shield(ctx, func(context.Context) error {
		t.Error("ran with a context that is over")
		return nil
	}))
}

func TestShieldAfterTheRequest(t *testing.T) {
	s := cancellation.New(t.Context())
	s.Finish()
	require.Equal(t, cancellation.ErrFinished, cancellation.Shield(s.Context(), func(context.Context) error {
		t.Error("ran after the request")
		return nil
	}))
}

// Compensation: what runs because of the cancel, detached from it.
func TestShieldOfDetachedWorkRunsAfterTheCancel(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	s.Cancel(cancellation.Peer, "stop")
	detached := context.WithoutCancel(s.Context())
	timed, cancel := context.WithTimeout(detached, time.Hour)
	defer cancel()
	for _, ctx := range []context.Context{detached, timed} {
		require.Equal(t, errOwn, cancellation.Shield(ctx, func(context.Context) error { return errOwn }))
	}
	// Detached work does not hold up the request that it left.
	s = cancellation.New(context.WithoutCancel(t.Context()))
	require.NoError(t, cancellation.Shield(context.WithoutCancel(s.Context()), func(context.Context) error {
		s.Cancel(cancellation.Peer, "stop")
		assert.True(t, s.Token().Cancelled())
		return nil
	}))
}

func TestShieldOfAStrayGoroutineOutlivesFinish(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		assert.NoError(t, cancellation.Shield(s.Context(), func(ctx context.Context) error {
			close(inside)
			<-leave
			return ctx.Err()
		}))
	}()
	<-inside
	require.Nil(t, s.Finish(), "the answer is owed")
	require.NoError(t, s.Context().Err(), "and the commit under way is whole")
	require.False(t, s.Cancel(cancellation.Peer, "late"))
	close(leave)
	<-left
	require.Equal(t, cancellation.ErrFinished, context.Cause(s.Context()))
}

func TestShieldDeliversAfterFinishWhenACancelWon(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		hook := make(chan struct{})
		s.Token().OnCancel(func(*cancellation.Error) { close(hook) })
		leave := make(chan struct{})
		go func() {
			assert.NoError(t, cancellation.Shield(s.Context(), func(context.Context) error {
				<-leave
				return nil
			}))
		}()
		synctest.Wait()
		s.Cancel(cancellation.Peer, "stop")
		require.NotNil(t, s.Finish())
		s.Wait()
		require.False(t, s.Token().Cancelled())
		close(leave)
		<-hook
		require.Same(t, s.Requested(), s.Token().Err())
	})
}

func TestShieldBelowCoversTheRequestsAbove(t *testing.T) {
	for name, derive := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"same scope": func(c context.Context) (context.Context, context.CancelFunc) { return c, func() {} },
		"own scope": func(c context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(c, time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := cancellation.New(context.WithoutCancel(t.Context()))
			ctx, cancel := derive(parent.Context())
			defer cancel()
			child := cancellation.New(ctx)
			defer child.Finish()
			grandchild := cancellation.New(child.Context())
			require.NoError(t, cancellation.Shield(grandchild.Context(), func(ctx context.Context) error {
				parent.Cancel(cancellation.Peer, "stop")
				for _, c := range []context.Context{parent.Context(), child.Context(), grandchild.Context(), ctx} {
					assert.NoError(t, c.Err())
				}
				assert.Equal(t, parent.Requested(), cancellation.Shield(parent.Context(), nil))
				assert.Equal(t, parent.Requested(), cancellation.Shield(child.Context(), nil))
				return cancellation.Shield(ctx, func(context.Context) error { return nil })
			}))
			require.True(t, parent.Token().Cancelled())
			<-grandchild.Token().Done()
			require.Equal(t, parent.Requested(), grandchild.Requested())
		})
	}
}

func TestShieldAboveDefersWhatFollows(t *testing.T) {
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	child := cancellation.New(parent.Context())
	require.NoError(t, cancellation.Shield(parent.Context(), func(ctx context.Context) error {
		inside := cancellation.New(ctx)
		parent.Cancel(cancellation.Peer, "stop")
		late := cancellation.New(parent.Context())
		for _, s := range []*cancellation.Source{child, inside, late} {
			assert.Equal(t, parent.Requested(), s.Requested(), "accepted at once")
			assert.NoError(t, s.Context().Err())
		}
		assert.Error(t, cancellation.Shield(child.Context(), nil))
		// A shield that comes and goes below must not deliver early.
		assert.NoError(t, cancellation.Shield(inside.Context(), func(context.Context) error { return nil }))
		assert.NoError(t, inside.Context().Err())
		assert.Same(t, parent.Requested(), late.Finish())
		return nil
	}))
	require.Equal(t, context.Canceled, child.Context().Err())
}

func TestShieldDoesNotCoverACancelBelow(t *testing.T) {
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	defer parent.Finish()
	child := cancellation.New(parent.Context())
	require.NoError(t, cancellation.Shield(parent.Context(), func(ctx context.Context) error {
		child.Cancel(cancellation.Timeout, "slow")
		assert.Equal(t, context.DeadlineExceeded, child.Context().Err())
		// A request of its own that was made inside and cancelled is not under way.
		inside := cancellation.New(ctx)
		inside.Cancel(cancellation.Timeout, "slow")
		assert.Same(t, inside.Requested(), cancellation.Shield(inside.Context(), nil))
		return nil
	}))
	require.NoError(t, parent.Context().Err())
}

func TestShieldInsideCoversRequestsThatWereCancelledApart(t *testing.T) {
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	child := cancellation.New(parent.Context())
	require.NoError(t, cancellation.Shield(child.Context(), func(ctx context.Context) error {
		child.Cancel(cancellation.Timeout, "slow")
		parent.Cancel(cancellation.Peer, "stop")
		return cancellation.Shield(ctx, func(context.Context) error {
			assert.NoError(t, child.Context().Err())
			assert.NoError(t, parent.Context().Err())
			return nil
		})
	}))
	require.Equal(t, context.DeadlineExceeded, child.Context().Err())
	require.Equal(t, context.Canceled, parent.Context().Err())
}

func TestShieldIsNoWayIntoAnotherRequest(t *testing.T) {
	a := cancellation.New(context.WithoutCancel(t.Context()))
	defer a.Finish()
	require.NoError(t, cancellation.Shield(a.Context(), func(ctx context.Context) error {
		b := cancellation.New(context.WithoutCancel(ctx)) // carries the mark as a value
		b.Cancel(cancellation.Peer, "stop")
		assert.Same(t, b.Requested(), cancellation.Shield(b.Context(), nil))
		return nil
	}))
}

func TestShieldAgainstCancelIsWhole(t *testing.T) {
	for range rounds {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		s.Context().Done()
		committed := false
		var err error
		race(
			func() { s.Cancel(cancellation.Peer, "stop") },
			func() {
				err = cancellation.Shield(s.Context(), func(ctx context.Context) error {
					for range 10 {
						if ctx.Err() != nil {
							return ctx.Err()
						}
					}
					committed = true
					return nil
				})
			},
		)
		require.Equal(t, committed, err == nil, "whole or refused")
		require.True(t, s.Token().Cancelled())
		if err != nil {
			require.Same(t, s.Requested(), err)
		}
	}
}
