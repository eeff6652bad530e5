package cancellation_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/heedmcp/heed/cancellation"
)

// What a loop pays for looking, by the ways to look.
func BenchmarkPoll(b *testing.B) {
	s := cancellation.New(context.WithoutCancel(b.Context()))
	defer s.Finish()
	token, ctx := s.Token(), s.Context()
	wrapped := context.WithValue(context.WithValue(ctx, valueKey{}, 1), valueKey{}, 2)
	derived, cancel := context.WithCancel(wrapped)
	defer cancel()
	for _, c := range []struct {
		name string
		poll func()
	}{
		{"Cancelled", func() { token.Cancelled() }},
		{"Err", func() { _ = token.Err() }},
		{"CtxErr", func() { _ = ctx.Err() }},
		{"Checkpoint", func() { _ = cancellation.Checkpoint(ctx) }},
		{"CheckpointWrapped", func() { _ = cancellation.Checkpoint(wrapped) }},
		{"CheckpointDerived", func() { _ = cancellation.Checkpoint(derived) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.poll()
			}
		})
	}
}

// Whether goroutines that look at one token get in one another's way.
func BenchmarkPollParallel(b *testing.B) {
	s := cancellation.New(context.WithoutCancel(b.Context()))
	defer s.Finish()
	ctx := s.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if cancellation.Checkpoint(ctx) != nil {
				b.Error("nobody cancelled")
			}
		}
	})
}

// What a request pays that is never cancelled, as most are not. "Waited" asks for
// Done, as database/sql and net/http do; WithCancelCause is the standard yardstick.
func BenchmarkNewFinish(b *testing.B) {
	parent := context.WithoutCancel(b.Context())
	above := cancellation.New(parent)
	defer above.Finish()
	b.Run("Plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			cancellation.New(parent).Finish()
		}
	})
	b.Run("Waited", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := cancellation.New(parent)
			s.Context().Done()
			s.Finish()
		}
	})
	b.Run("Child", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			cancellation.New(above.Context()).Finish()
		}
	})
	b.Run("WithCancelCause", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithCancelCause(parent)
			ctx.Done()
			cancel(nil)
		}
	})
}

func BenchmarkOnCancelStop(b *testing.B) {
	s := cancellation.New(context.WithoutCancel(b.Context()))
	defer s.Finish()
	token := s.Token()
	hook := func(*cancellation.Error) {}
	b.ReportAllocs()
	for b.Loop() {
		token.OnCancel(hook)()
	}
}

func BenchmarkShield(b *testing.B) {
	s := cancellation.New(context.WithoutCancel(b.Context()))
	defer s.Finish()
	ctx := s.Context()
	commit := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = cancellation.Shield(ctx, commit)
	}
}

// How long the canceller, which is the reader of a connection, is kept. The hooks
// themselves are not measured: they run elsewhere.
func BenchmarkCancel(b *testing.B) {
	hook := func(*cancellation.Error) {}
	parent := context.WithoutCancel(b.Context())
	for _, hooks := range []int{0, 1, 100, 1000} {
		b.Run(fmt.Sprintf("hooks=%d", hooks), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s := cancellation.New(parent)
				s.Context().Done()
				for range hooks {
					s.Token().OnCancel(hook)
				}
				b.StartTimer()
				s.Cancel(cancellation.Peer, "user pressed stop")
				b.StopTimer()
				s.Wait()
				s.Finish()
				b.StartTimer()
			}
		})
	}
}
