// Package probe lets cancellationtest see the points at which a handler can be
// stopped. It costs programs that are not under such a test one atomic read of a
// value that never changes.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # Guarantees
//
// A probe is called on the goroutine that passes the point, before the point
// decides whether to go on. It is found through the context, so contexts derived
// from the probed one count as well.
package probe
