package cancellation

import (
	"context"
	"sync/atomic"
)

// Token is the worker's end of a request's cancellation. A nil *Token is valid and
// never cancelled. All methods are safe for concurrent use.
type Token struct {
	ended  atomic.Pointer[outcome] // set once, by Source.settleLocked; nil: the request goes on
	source *Source                 // set by New
}

// FromContext returns the token that ctx carries, or nil when it carries none.
// Contexts made by context.WithoutCancel keep their values and so their token,
// though they do not end with it.
func FromContext(ctx context.Context) *Token {
	if c, ok := ctx.(*sourceContext); ok {
		return &c.token
	}
	t, _ := ctx.Value(tokenKey{}).(*Token)
	return t
}

// Done returns a channel that is closed when the request ends: when a cancel is
// delivered, or when the request has finished. [Token.Err] tells which. The first
// call allocates the channel; it is nil for a nil token.
func (t *Token) Done() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.source.done()
}

// Cancelled reports whether a cancel was delivered. It stays false when the
// request finishes without one. While the request goes on it costs one atomic
// read and allocates nothing.
func (t *Token) Cancelled() bool {
	if t == nil || t.ended.Load() == nil {
		return false
	}
	return t.source.observe() != finished
}

// Err returns nil until the request ends, then the [*Error] that was delivered,
// or [ErrFinished]. It is non-nil exactly when Done is closed, never changes once
// set, and allocates nothing while it is nil.
func (t *Token) Err() error {
	if t == nil || t.ended.Load() == nil {
		return nil
	}
	return t.source.observe().cause()
}

// OnCancel arranges for f to be called when a cancel is delivered: once, on a
// goroutine of its own, with the cancellation. If one was delivered already, f is
// called soon. It is never called because the request finished. Hooks of one
// request run at the same time and in no order, so one that blocks delays no
// other; one that panics is reported to the owner (see [Source.SetPanicHandler])
// and does no further harm.
//
// The returned function takes f back. It reports true if f has not been called
// and never will be; false means that f was started and may still run. It waits
// for nothing and may be called more than once.
func (t *Token) OnCancel(f func(*Error)) (stop func() bool) {
	if t == nil {
		return stoppedBefore
	}
	return t.source.addHook(f)
}

// stoppedBefore is the stop function of a hook that can never run.
func stoppedBefore() bool { return true }
