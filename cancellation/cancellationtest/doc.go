// Package cancellationtest tests that work stops well, at every point at which it can.
//
// [Every] runs a handler once without a cancel, to count its checkpoints, and then
// once per checkpoint, cancelling at each in turn. After every run it checks the
// caller's invariant: is the ledger whole, was everybody notified once?
//
//	cancellationtest.Every(t, func(t testing.TB) cancellationtest.Run {
//		store := newStore(t) // fresh for every run
//		return cancellationtest.Run{
//			Handler: func(ctx context.Context) error { return job(ctx, store) },
//			Check: func(t testing.TB, o cancellationtest.Outcome) {
//				assert.Equal(t, store.Rows(), store.Ledger())
//			},
//		}
//	})
//
// [At] cancels at one given checkpoint. Handlers of other shapes are wrapped in a
// closure. The checkpoints are calls of [cancellation.Checkpoint] (progress reports
// make them, too), and the two sides of each [cancellation.Shield]'s opening: just
// before, where the shield is refused, and just inside, where the cancel has to wait
// for it. A shield inside another is no point of its own. Polls of a token and of
// ctx.Err are not seen.
//
// A run fails the test if the handler panics, or is still running, or has hooks
// running, at the end of [Run.Limit]; if a hook panics; or if a goroutine that the
// run started is left when it is over and its clean-ups are done.
//
// # Concurrency
//
// Call [At] and [Every] from the test's goroutine. They work in parallel tests, whose
// goroutines they do not mistake for leaks, and in testing/synctest bubbles. Handlers
// may use any number of goroutines, and run on one of their own.
//
// # Guarantees
//
//   - The cancel is accepted on the goroutine that passes the checkpoint, before the
//     checkpoint looks: a handler cannot slip past it.
//   - Every run is over, hooks included, before Check is called.
//   - A leak is found if the goroutine was started by the handler, by a goroutine or a
//     hook of the run, and is still there a second later. Goroutines started by
//     timers and by workers that existed before are not known to belong to the run.
package cancellationtest
