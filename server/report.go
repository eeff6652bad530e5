package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// report tells operators how the request ended.
func (c *Call) report(cancelled *cancellation.Error, err error, returned time.Time, answered bool) {
	requested, observed := c.times()
	c.tell(cancelled, RequestDone{
		Started: c.started(), Requested: requested, Observed: observed, Returned: returned,
		Answered: answered, Parked: c.parked, Err: err,
	})
}

// report tells operators how an operation ended that no request attends (P6).
func (op *operation) report(cancelled *cancellation.Error) {
	op.mu.Lock()
	last, err, returned := op.last, op.outcome.err, op.returned
	op.mu.Unlock()
	requested, observed := op.source.Times()
	last.tell(cancelled, RequestDone{
		Started: op.first.started(), Requested: requested, Observed: observed, Returned: returned, Err: err,
	})
}

// tell completes d with what identifies the request, and gives it to the logger and
// the observer.
func (c *Call) tell(cancelled *cancellation.Error, d RequestDone) {
	if cancelled == nil {
		d.Requested, d.Observed = time.Time{}, time.Time{}
		if d.Err != nil {
			c.logFailure(d.Err)
		}
	} else {
		d.Cancelled, d.Origin, d.Reason = true, cancelled.Origin, cancelled.Reason
		if d.Observed.IsZero() {
			d.Observed = d.Returned
		}
		c.logCancelled(cancelled, d.Err, d.Requested, d.Observed, d.Returned)
	}
	done := c.server.options.Observer.RequestDone
	if done == nil {
		return
	}
	d.Session, d.ID, d.Method, d.Name = c.session.ID(), c.id.String(), c.method.name, c.name()
	c.observe(func() { done(d) })
}

// times returns when a cancel was accepted and when the handler noticed.
func (c *Call) times() (requested, observed time.Time) {
	requested, observed = c.source.Times()
	if work := c.beside.Load(); work != nil {
		_, observed = work.source.Times() // the request itself only waits
		return requested, observed
	}
	if op := c.operation.Load(); op != nil {
		var ended time.Time
		ended, observed = op.source.Times()
		if requested.IsZero() {
			requested = ended // cancelled while it was parked
		}
	}
	return requested, observed
}

// logCancelled logs the end of a cancelled request: quietly, unless the handler
// failed for a reason of its own that nobody else will hear of.
func (c *Call) logCancelled(cancelled *cancellation.Error, err error, requested, observed, returned time.Time) {
	level := slog.LevelDebug
	ownFault := err != nil && !errors.Is(err, error(cancelled)) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	if ownFault {
		level = slog.LevelWarn
	}
	logger := c.server.options.Logger
	if !logger.Enabled(context.Background(), level) {
		return
	}
	attrs := []any{
		"origin", cancelled.Origin.String(), "reason", cancelled.Reason,
		"observed_after", observed.Sub(requested), "returned_after", returned.Sub(requested),
	}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	var panicked *panicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, "stack", string(panicked.stack))
	}
	c.log().Log(context.Background(), level, "request cancelled", attrs...)
}

// logFailure logs why a request was answered with an error. Errors that the peer
// got to see are the peer's to handle, so they are logged quietly.
func (c *Call) logFailure(err error) {
	var panicked *panicError
	if errors.As(err, &panicked) {
		c.log().Error("handler panicked", "panic", panicked.value, "stack", string(panicked.stack))
		return
	}
	if c.server.options.Logger.Enabled(context.Background(), slog.LevelDebug) {
		c.log().Debug("request failed", "error", err)
	}
}

// reportUnresponsive tells operators of a handler that ignores its token.
func (c *Call) reportUnresponsive(cancelled *cancellation.Error) {
	c.server.counters.unresponsive.Add(1)
	requested, _ := c.times()
	stack := c.stack()
	c.log().Warn("handler ignores its cancellation",
		"origin", cancelled.Origin.String(), "reason", cancelled.Reason,
		"since", time.Since(requested), "stack", stack)
	if f := c.server.options.Observer.Unresponsive; f != nil {
		c.observe(func() {
			f(Unresponsive{
				Session: c.session.ID(), ID: c.id.String(), Method: c.method.name, Name: c.name(),
				Origin: cancelled.Origin, Reason: cancelled.Reason, Requested: requested, Stack: stack,
			})
		})
	}
}

// observe calls into the operator's observer and contains its panics.
func (c *Call) observe(f func()) {
	defer func() {
		if p := recover(); p != nil {
			c.log().Error("observer panicked", "panic", p)
		}
	}()
	f()
}
