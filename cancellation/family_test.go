package cancellation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/require"
)

func TestChildOfAPlainParent(t *testing.T) {
	wrapped := fmt.Errorf("gone: %w", &cancellation.Error{Origin: cancellation.SessionEnd, Reason: "bye"})
	for name, c := range map[string]struct {
		parent func(context.Context) (context.Context, func())
		want   cancellation.Error
	}{
		"cancelled": {func(c context.Context) (context.Context, func()) {
			c, cancel := context.WithCancel(c)
			return c, cancel
		}, cancellation.Error{Origin: cancellation.Parent, Reason: context.Canceled.Error()}},
		"cancelled with a cause": {func(c context.Context) (context.Context, func()) {
			c, cancel := context.WithCancelCause(c)
			return c, func() { cancel(errors.New("moon set")) }
		}, cancellation.Error{Origin: cancellation.Parent, Reason: "moon set"}},
		"cancelled with a cancellation": {func(c context.Context) (context.Context, func()) {
			c, cancel := context.WithCancelCause(c)
			return c, func() { cancel(wrapped) }
		}, cancellation.Error{Origin: cancellation.SessionEnd, Reason: "bye"}},
		"deadline": {func(c context.Context) (context.Context, func()) {
			c, cancel := context.WithTimeout(c, time.Second)
			return c, func() { time.Sleep(time.Second); synctest.Wait(); cancel() }
		}, cancellation.Error{Origin: cancellation.Timeout, Reason: "context deadline exceeded"}},
		"deadline with a cause": {func(c context.Context) (context.Context, func()) {
			c, cancel := context.WithTimeoutCause(c, time.Second, errors.New("tool limit"))
			return c, func() { time.Sleep(time.Second); synctest.Wait(); cancel() }
		}, cancellation.Error{Origin: cancellation.Timeout, Reason: "tool limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				parent, end := c.parent(t.Context())
				before := cancellation.New(parent)
				finished := cancellation.New(parent)
				require.Nil(t, finished.Finish())
				require.NoError(t, before.Token().Err())
				end()
				<-before.Token().Done()
				require.Equal(t, &c.want, before.Finish())
				require.Nil(t, finished.Finish())

				after := cancellation.New(parent)
				require.True(t, after.Token().Cancelled(), "born cancelled")
				require.Equal(t, &c.want, after.Finish())
			})
		})
	}
}

func TestChildInAScopeOfItsOwn(t *testing.T) {
	// The scope between ends first.
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	scope, cancel := context.WithCancelCause(parent.Context())
	child := cancellation.New(scope)
	cancel(errors.New("step is over"))
	<-child.Token().Done()
	require.Equal(t, &cancellation.Error{Origin: cancellation.Parent, Reason: "step is over"}, child.Finish())
	require.Nil(t, parent.Finish())

	// The request above is cancelled.
	parent = cancellation.New(context.WithoutCancel(t.Context()))
	scope, cancel2 := context.WithCancel(parent.Context())
	defer cancel2()
	child = cancellation.New(scope)
	parent.Cancel(cancellation.Shutdown, "going down")
	<-child.Token().Done()
	require.Equal(t, parent.Requested(), child.Finish())
}

func TestDetachedChildIsNotCancelledWithTheRequest(t *testing.T) {
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	detached := context.WithoutCancel(parent.Context())
	timed, cancel := context.WithTimeout(detached, time.Hour)
	defer cancel()
	children := []*cancellation.Source{cancellation.New(detached), cancellation.New(timed)}
	parent.Cancel(cancellation.Peer, "stop")
	children = append(children, cancellation.New(detached), cancellation.New(timed))
	for _, child := range children {
		require.NoError(t, child.Token().Err())
		require.NoError(t, cancellation.Shield(child.Context(), func(context.Context) error { return nil }))
		require.Nil(t, child.Finish())
	}
}

func TestChildEndsWithoutItsParent(t *testing.T) {
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	var children []*cancellation.Source
	for range 5 {
		children = append(children, cancellation.New(parent.Context()))
	}
	require.True(t, children[2].Cancel(cancellation.Timeout, "slow"))
	require.Nil(t, children[4].Finish())
	require.Nil(t, children[0].Finish())
	require.NoError(t, parent.Token().Err())
	parent.Cancel(cancellation.Peer, "stop")
	for i, want := range []cancellation.Origin{0, cancellation.Peer, cancellation.Timeout, cancellation.Peer, 0} {
		got := children[i].Finish()
		require.Equal(t, want == 0, got == nil, i)
		if got != nil {
			require.Equal(t, want, got.Origin, i)
		}
	}
}

func TestChildOutlivesAFinishedParent(t *testing.T) {
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	child := cancellation.New(parent.Context())
	hook := make(chan *cancellation.Error, 1)
	child.Token().OnCancel(func(e *cancellation.Error) { hook <- e })
	require.Nil(t, parent.Finish())
	want := &cancellation.Error{Origin: cancellation.Parent, Reason: "request already finished"}
	require.Equal(t, want, <-hook)
	require.Equal(t, want, child.Finish())
	require.Equal(t, want, cancellation.New(parent.Context()).Finish())
}

func TestChildAgainstParentHaveOneWinner(t *testing.T) {
	for range rounds {
		parent := cancellation.New(context.WithoutCancel(t.Context()))
		var child *cancellation.Source
		var answer *cancellation.Error
		race(
			func() { parent.Cancel(cancellation.Peer, "stop") },
			func() {
				child = cancellation.New(parent.Context())
				answer = child.Finish()
			},
		)
		require.Same(t, answer, child.Requested())
		if answer != nil {
			require.Same(t, parent.Requested(), answer)
		}
	}
}

// Finish must let go: of the child by the parent, and of following a plain parent.
func TestFinishedChildrenAreReleased(t *testing.T) {
	parent := cancellation.New(context.WithoutCancel(t.Context()))
	defer parent.Finish()
	plain, cancel := context.WithCancel(t.Context())
	defer cancel()
	var gone []weak.Pointer[cancellation.Source]
	for _, above := range []context.Context{parent.Context(), plain} {
		for _, end := range []func(*cancellation.Source){
			func(*cancellation.Source) {},
			func(s *cancellation.Source) { s.Cancel(cancellation.Peer, "stop") },
		} {
			child := cancellation.New(above)
			child.Context().Done()
			end(child)
			child.Finish()
			gone = append(gone, weak.Make(child))
		}
	}
	// Siblings leave in any order.
	var siblings [5]*cancellation.Source
	for i := range siblings {
		siblings[i] = cancellation.New(parent.Context())
		gone = append(gone, weak.Make(siblings[i]))
	}
	for _, i := range []int{2, 1, 3, 4, 0} {
		siblings[i].Finish()
	}
	runtime.GC()
	for i, child := range gone {
		require.Nil(t, child.Value(), i)
	}
	runtime.KeepAlive(parent)
}

func TestNewRefusesANilParent(t *testing.T) {
	require.Panics(t, func() {
		var none context.Context
		cancellation.New(none)
	})
}
