package cancellation

import (
	"context"

	"github.com/heedmcp/heed/cancellation/internal/probe"
)

// Checkpoint is where work can stop: call it between steps and return the error
// that it gives. It returns
//   - nil while ctx goes on,
//   - the [*Error] when the cancel of ctx's request was delivered,
//   - otherwise context.Cause(ctx), when ctx ended for a reason of its own.
//
// Code that must run after a cancel uses context.WithoutCancel: such a context has
// not ended, so its checkpoints pass. Inside a [Shield] checkpoints pass as well,
// since delivery is deferred. While ctx goes on, Checkpoint allocates nothing.
func Checkpoint(ctx context.Context) error {
	if probe.Active() {
		probe.Pass(ctx, probe.Checkpoint)
	}
	if ctx.Err() == nil {
		return nil
	}
	return endOf(ctx)
}

// endOf returns why ctx, which has ended, did; nil if it has not.
func endOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if t := FromContext(ctx); t.Cancelled() {
		return t.Err()
	}
	return context.Cause(ctx)
}
