// Package cancellation asks work to stop, tells it why, and lets it stop well.
//
// A [Source] is the owner's end: whoever runs a request makes one, cancels it
// when there is a reason, and finishes it when the work has returned. A [Token] is
// the worker's end. It travels in the request's context, which behaves as Go
// programs expect: Done closes, Err is context.Canceled or
// context.DeadlineExceeded, context.Cause is the [*Error] with origin and reason,
// and everything that takes a context (database/sql, net/http, os/exec) stops by itself.
//
// Work that has steps asks between them:
//
//	for _, batch := range batches {
//		if err := cancellation.Checkpoint(ctx); err != nil {
//			return err // *cancellation.Error: origin and reason
//		}
//		if err := prepare(ctx, tx, batch); err != nil {
//			return err
//		}
//		err := cancellation.Shield(ctx, func(context.Context) error {
//			return tx.Commit() // whole, whenever the cancel arrives
//		})
//		if err != nil {
//			return err
//		}
//	}
//
// Work that blocks where no context reaches registers a hook that frees it:
//
//	stop := cancellation.FromContext(ctx).OnCancel(func(*cancellation.Error) { conn.Close() })
//	defer stop()
//
// Clean-up that must run after a cancel uses context.WithoutCancel(ctx).
//
// The package uses the standard library alone. [MCP's cancellation page] says when
// a request is cancelled and what then appears on the wire; this package only
// decides, exactly once, whether it was cancelled or answered.
//
// # Concurrency
//
// Every function and method may be called from any goroutine at any time. Cancel
// never blocks and runs none of the caller's functions. Hooks run on goroutines
// of their own. [Source.Wait] and [Shield] (for as long as its function runs) are
// the only calls that wait.
//
// # Guarantees
//
//   - Exactly one of the first accepted [Source.Cancel] and [Source.Finish] wins.
//   - Done is closed exactly when Err is set, and the cause never changes.
//   - A hook runs at most once, after a delivered cancel only.
//   - An open shield defers delivery for its whole request.
//   - A child request stops with its parent, for the same reason.
//   - While a request goes on, a poll costs one atomic read and no allocation.
//
// What is not guaranteed: that work stops. It stops when it looks. [Source.Times]
// tells how long that took.
//
// [MCP's cancellation page]: https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation
package cancellation
