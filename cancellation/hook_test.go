package cancellation_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStopTakesHooksBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		var ran [5]atomic.Int32
		var stops [5]func() bool
		for i := range stops {
			stops[i] = s.Token().OnCancel(func(*cancellation.Error) { ran[i].Add(1) })
		}
		for _, i := range []int{2, 4, 0} { // from the middle and from both ends
			require.True(t, stops[i]())
			require.True(t, stops[i](), "a second call says the same")
		}
		s.Cancel(cancellation.Peer, "stop")
		s.Wait()
		for i, stopped := range []bool{true, false, true, false, true} {
			require.Equal(t, stopped, ran[i].Load() == 0, i)
			require.Equal(t, stopped, stops[i](), i)
		}
	})
}

func TestStopAndCancelHaveOneWinner(t *testing.T) {
	for range rounds {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		var ran, prevented atomic.Bool
		stop := s.Token().OnCancel(func(*cancellation.Error) { ran.Store(true) })
		race(
			func() { s.Cancel(cancellation.Peer, "stop") },
			func() { prevented.Store(stop()) },
		)
		s.Wait()
		require.NotEqual(t, ran.Load(), prevented.Load())
	}
}

func TestOnCancelAgainstCancelLosesNoHook(t *testing.T) {
	for range rounds {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		ran := make(chan struct{}, 1)
		race(
			func() { s.Cancel(cancellation.Peer, "stop") },
			func() { s.Token().OnCancel(func(*cancellation.Error) { ran <- struct{}{} }) },
		)
		<-ran
		s.Wait()
	}
}

func TestWaitIsForStartedHooksOnly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		release := make(chan struct{})
		s.Token().OnCancel(func(*cancellation.Error) { <-release })
		s.Wait() // none has started

		s.Cancel(cancellation.Peer, "stop")
		var waiting atomic.Int32
		for range 3 {
			waiting.Add(1)
			go func() {
				s.Wait()
				waiting.Add(-1)
			}()
		}
		synctest.Wait()
		require.EqualValues(t, 3, waiting.Load())
		// One more, that starts meanwhile and holds Wait as well.
		second := make(chan struct{})
		s.Token().OnCancel(func(*cancellation.Error) { <-second })
		close(release)
		synctest.Wait()
		require.EqualValues(t, 3, waiting.Load())
		close(second)
		synctest.Wait()
		require.Zero(t, waiting.Load())
	})
}

func TestPanicsInHooksAreContainedAndReported(t *testing.T) {
	type report struct {
		value any
		stack string
	}
	reports := make(chan report, 2)
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	parent.SetPanicHandler(func(value any, stack []byte) { reports <- report{value, string(stack)} })
	child := cancellation.New(parent.Context()) // its panics go to the parent's handler
	var ran atomic.Int32
	for _, s := range []*cancellation.Source{parent, child} {
		s.Token().OnCancel(func(*cancellation.Error) { ran.Add(1) })
		s.Token().OnCancel(func(*cancellation.Error) { panic("boom") })
		s.Token().OnCancel(func(*cancellation.Error) { ran.Add(1); goexit() })
	}
	parent.Cancel(cancellation.Peer, "stop")
	parent.Wait()
	child.Wait()
	require.EqualValues(t, 4, ran.Load(), "the others run")
	for range 2 {
		got := <-reports
		require.Equal(t, "boom", got.value)
		require.Contains(t, got.stack, "hook_test.go")
	}
}

func TestPanicsWithoutAHandlerAreLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	defer slog.SetDefault(before)

	s := cancellation.New(context.WithoutCancel(t.Context()))
	s.Token().OnCancel(func(*cancellation.Error) { panic("first") })
	s.Cancel(cancellation.Peer, "stop")
	s.Wait()
	require.Contains(t, log.String(), `"panic":"first"`)
	require.Contains(t, log.String(), `hook_test.go`)

	s = cancellation.New(context.WithoutCancel(t.Context()))
	s.SetPanicHandler(func(any, []byte) { panic("second") })
	s.Token().OnCancel(func(*cancellation.Error) { panic("third") })
	s.Cancel(cancellation.Peer, "stop")
	s.Wait()
	require.Contains(t, log.String(), `"panic":"second"`, "a handler's own panic does not end the process")
}

func TestHookRegisteredInsideAShieldWaitsForDelivery(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		var ran atomic.Bool
		require.NoError(t, cancellation.Shield(s.Context(), func(context.Context) error {
			s.Cancel(cancellation.Peer, "stop")
			s.Token().OnCancel(func(*cancellation.Error) { ran.Store(true) })
			time.Sleep(time.Second)
			assert.False(t, ran.Load())
			return nil
		}))
		s.Wait()
		require.True(t, ran.Load())
	})
}
