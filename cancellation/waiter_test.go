package cancellation_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/assert"
)

func TestWaitHandlerRunsOnceForTheFirstWhoWaits(t *testing.T) {
	ways := map[string]func(ctx context.Context){
		"done":       func(ctx context.Context) { _ = ctx.Done() },
		"token":      func(ctx context.Context) { _ = cancellation.FromContext(ctx).Done() },
		"hook":       func(ctx context.Context) { cancellation.FromContext(ctx).OnCancel(func(*cancellation.Error) {}) },
		"derived":    func(ctx context.Context) { ctx, cancel := context.WithCancel(ctx); defer cancel(); _ = ctx.Done() },
		"after func": func(ctx context.Context) { context.AfterFunc(ctx, func() {}) },
		"child's done": func(ctx context.Context) {
			child := cancellation.New(ctx)
			defer child.Finish()
			_ = child.Context().Done()
		},
		"child's hook": func(ctx context.Context) {
			child := cancellation.New(ctx)
			defer child.Finish()
			child.Token().OnCancel(func(*cancellation.Error) {})
		},
	}
	for name, wait := range ways {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := cancellation.New(context.Background())
				calls := 0
				s.SetWaitHandler(func() { calls++ })
				wait(s.Context())
				assert.Equal(t, 1, calls)
				wait(s.Context())
				assert.Equal(t, 1, calls, "once")
				s.Finish()
				synctest.Wait()
			})
		})
	}
}

func TestWaitHandlerDoesNotRunForWhoOnlyLooks(t *testing.T) {
	s := cancellation.New(context.Background())
	s.SetWaitHandler(func() { t.Error("nobody waits") })
	ctx := s.Context()
	_, _ = cancellation.Checkpoint(ctx), ctx.Err()
	_, _ = s.Token().Cancelled(), s.Token().Err()
	_ = ctx.Value("key")
	s.Finish()
}

func TestWaitHandlerMayCancel(t *testing.T) {
	for _, wait := range []func(*cancellation.Token){
		func(tok *cancellation.Token) { <-tok.Done() },
		func(tok *cancellation.Token) {
			fired := make(chan struct{})
			tok.OnCancel(func(*cancellation.Error) { close(fired) })
			<-fired
		},
	} {
		s := cancellation.New(context.Background())
		s.SetWaitHandler(func() { s.Cancel(cancellation.Disconnect, "was gone already") })
		wait(s.Token())
		assert.ErrorContains(t, s.Token().Err(), "was gone already")
		s.Finish()
	}
}
