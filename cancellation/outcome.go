package cancellation

import (
	"context"
	"time"
)

// outcome is how a request was decided: by an accepted cancel or by Finish. It
// is immutable, and sources that follow a parent share the parent's.
type outcome struct {
	fault *Error    // nil: finished
	at    time.Time // when the cancel was accepted; zero for finished
}

// finished is the outcome of every request whose Finish won.
var finished = &outcome{}

// finishedContext serves all finished requests that nobody waited for.
var finishedContext = finished.context()

// longAgo is a deadline that has passed on every clock, a test's included.
var longAgo = time.Unix(0, 0)

// cancellation returns o's *Error, or nil for finished and for no outcome.
func (o *outcome) cancellation() *Error {
	if o == nil {
		return nil
	}
	return o.fault
}

// cause is what context.Cause returns for o.
func (o *outcome) cause() error {
	if o.fault == nil {
		return ErrFinished
	}
	return o.fault
}

// contextError is what ctx.Err returns for o.
func (o *outcome) contextError() error {
	if o.fault == nil {
		return context.Canceled
	}
	return o.fault.contextError()
}

// context returns a standard context that has ended with o's error and cause.
// A deadline in the past is the only public way to make one end with DeadlineExceeded.
func (o *outcome) context() context.Context {
	if o.contextError() == context.DeadlineExceeded {
		ctx, cancel := context.WithDeadlineCause(context.Background(), longAgo, o.cause())
		cancel()
		return ctx
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(o.cause())
	return ctx
}
