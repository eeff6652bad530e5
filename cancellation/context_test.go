package cancellation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func isAny(err, target error) bool { return errors.Is(err, target) }

func goexit() { runtime.Goexit() }

type valueKey struct{}

// What a derived context must say, whenever it was derived and however deep.
func TestDerivedContextsEndLikeTheRequest(t *testing.T) {
	ends := map[string]struct {
		end func(*cancellation.Source)
		err error
	}{
		"peer":     {func(s *cancellation.Source) { s.Cancel(cancellation.Peer, "stop") }, context.Canceled},
		"timeout":  {func(s *cancellation.Source) { s.Cancel(cancellation.Timeout, "slow") }, context.DeadlineExceeded},
		"finished": {func(s *cancellation.Source) { s.Finish() }, context.Canceled},
	}
	derive := map[string]func(context.Context) (context.Context, context.CancelFunc){
		"itself":     func(c context.Context) (context.Context, context.CancelFunc) { return c, func() {} },
		"WithCancel": context.WithCancel,
		"WithTimeout": func(c context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(c, time.Hour)
		},
		"WithValue": func(c context.Context) (context.Context, context.CancelFunc) {
			return context.WithValue(c, valueKey{}, "v"), func() {}
		},
		"deep": func(c context.Context) (context.Context, context.CancelFunc) {
			c, cancel := context.WithCancel(context.WithValue(c, valueKey{}, "v"))
			c, cancel2 := context.WithCancel(c)
			return context.WithValue(c, valueKey{}, "w"), func() { cancel2(); cancel() }
		},
	}
	for endName, e := range ends {
		for deriveName, d := range derive {
			for _, when := range []string{"before", "before, waited for", "after"} {
				t.Run(fmt.Sprint(endName, "/", deriveName, "/", when), func(t *testing.T) {
					s := cancellation.New(context.WithoutCancel(t.Context()))
					if when == "after" {
						e.end(s)
					}
					ctx, cancel := d(s.Context())
					defer cancel()
					if when == "before, waited for" {
						ctx.Done()
					}
					if when != "after" {
						require.NoError(t, ctx.Err())
						require.NoError(t, context.Cause(ctx))
						e.end(s)
					}
					require.Equal(t, e.err, ctx.Err())
					<-ctx.Done()
					require.Equal(t, s.Token().Err(), context.Cause(ctx))
					require.Equal(t, s.Token().Err(), cancellation.Checkpoint(ctx))
				})
			}
		}
	}
}

func TestDerivingStartsNoGoroutine(t *testing.T) {
	// In a bubble of its own nothing else can start or end a goroutine.
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		before := runtime.NumGoroutine()
		for range 100 {
			ctx := context.WithValue(s.Context(), valueKey{}, 1)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			ctx, cancel = context.WithTimeout(ctx, time.Hour)
			defer cancel()
			defer context.AfterFunc(ctx, func() {})()
			child := cancellation.New(ctx)
			defer child.Finish()
		}
		require.LessOrEqual(t, runtime.NumGoroutine(), before)
	})
}

func TestContextPassesOnValuesAndDeadline(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	parent, cancel := context.WithDeadline(context.WithValue(t.Context(), valueKey{}, "v"), deadline)
	defer cancel()
	s := cancellation.New(parent)
	for range 2 { // without and with a waiter, then after the end
		got, ok := s.Context().Deadline()
		require.True(t, ok)
		require.Equal(t, deadline, got)
		require.Equal(t, "v", s.Context().Value(valueKey{}))
		require.Nil(t, s.Context().Value("nobody's"))
		s.Context().Done()
	}
	s.Finish()
	require.Equal(t, "v", s.Context().Value(valueKey{}))
	require.Equal(t, "cancellation.Context", fmt.Sprint(s.Context()))

	_, ok := cancellation.New(context.WithoutCancel(t.Context())).Context().Deadline()
	require.False(t, ok)
}

func TestTimeoutHasADeadlineErrorButNoDeadline(t *testing.T) {
	s := cancellation.New(context.WithoutCancel(t.Context()))
	s.Cancel(cancellation.Timeout, "slow")
	derived, cancel := context.WithCancel(s.Context())
	defer cancel()
	_, ok := derived.Deadline()
	require.False(t, ok)
	require.Equal(t, context.DeadlineExceeded, derived.Err())
}

func TestFromContext(t *testing.T) {
	require.Nil(t, cancellation.FromContext(t.Context()))
	s := cancellation.New(t.Context())
	defer s.Finish()
	require.Same(t, s.Token(), cancellation.FromContext(s.Context()))
	require.Same(t, s.Token(), cancellation.FromContext(context.WithValue(s.Context(), valueKey{}, 1)))
	child := cancellation.New(s.Context())
	defer child.Finish()
	require.Same(t, child.Token(), cancellation.FromContext(child.Context()))
}

func TestNilTokenIsNeverCancelled(t *testing.T) {
	var token *cancellation.Token
	require.Nil(t, token.Done())
	require.False(t, token.Cancelled())
	require.NoError(t, token.Err())
	require.True(t, token.OnCancel(func(*cancellation.Error) { t.Error("hook of a nil token ran") })())
}

func TestCheckpoint(t *testing.T) {
	t.Run("without a token", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		require.NoError(t, cancellation.Checkpoint(ctx))
		why := errors.New("why")
		cancel(why)
		require.Equal(t, why, cancellation.Checkpoint(ctx))
	})
	t.Run("the cancel goes before a reason of ctx's own", func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(errors.New("own"))
		require.EqualError(t, cancellation.Checkpoint(ctx), "own")
		s.Cancel(cancellation.Peer, "stop")
		require.Same(t, s.Requested(), cancellation.Checkpoint(ctx))
	})
	t.Run("detached work goes on", func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		s.Cancel(cancellation.Peer, "stop")
		ctx := context.WithoutCancel(s.Context())
		require.NoError(t, cancellation.Checkpoint(ctx))
		timed, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		require.NoError(t, cancellation.Checkpoint(timed))
	})
	t.Run("after the request", func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		s.Finish()
		require.Equal(t, cancellation.ErrFinished, cancellation.Checkpoint(s.Context()))
		require.Equal(t, cancellation.ErrFinished, s.Token().Err())
		require.False(t, s.Token().Cancelled())
	})
}

func TestTimes(t *testing.T) {
	observers := map[string]func(*cancellation.Source){
		"Err":        func(s *cancellation.Source) { assert.Error(t, s.Token().Err()) },
		"Cancelled":  func(s *cancellation.Source) { assert.True(t, s.Token().Cancelled()) },
		"Checkpoint": func(s *cancellation.Source) { assert.Error(t, cancellation.Checkpoint(s.Context())) },
		"ctx.Err":    func(s *cancellation.Source) { assert.Error(t, s.Context().Err()) },
		"Cause":      func(s *cancellation.Source) { assert.Error(t, context.Cause(s.Context())) },
		"Shield":     func(s *cancellation.Source) { assert.Error(t, cancellation.Shield(s.Context(), nil)) },
		"hook":       func(s *cancellation.Source) { s.Token().OnCancel(func(*cancellation.Error) {}); s.Wait() },
		"derived": func(s *cancellation.Source) {
			ctx, cancel := context.WithCancel(s.Context())
			defer cancel()
			assert.Error(t, cancellation.Checkpoint(ctx))
		},
		"child": func(s *cancellation.Source) { assert.True(t, cancellation.New(s.Context()).Token().Cancelled()) },
	}
	for name, observe := range observers {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := cancellation.New(context.WithoutCancel(t.Context()))
				s.Context().Done()
				assert.NoError(t, s.Token().Err())
				requested, observed := s.Times()
				require.Zero(t, requested)
				require.Zero(t, observed)

				time.Sleep(time.Second)
				start := time.Now()
				s.Cancel(cancellation.Peer, "stop")
				time.Sleep(time.Second)
				<-s.Context().Done() // leaves no trace
				s.Requested()        // the owner's look does not count
				requested, observed = s.Times()
				require.Equal(t, start, requested)
				require.Zero(t, observed)

				observe(s)
				time.Sleep(time.Second)
				observe(s)
				s.Finish()
				requested, observed = s.Times()
				require.Equal(t, start, requested)
				require.Equal(t, time.Second, observed.Sub(requested), "the first time counts")
			})
		})
	}
	t.Run("finished", func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		s.Finish()
		require.Error(t, s.Context().Err())
		requested, observed := s.Times()
		require.Zero(t, requested)
		require.Zero(t, observed)
	})
}
