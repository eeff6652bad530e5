// Package bubble runs tests in the fake time of testing/synctest, with an end to it.
//
// A bubble in which everything waits for ever is found out at once, unless there is a timer:
// then time goes on. With a timer that is set again and again, such as one for keep-alive
// messages, it does so without an end, and the test hangs until go test kills it ten
// minutes later. [Test] is synctest.Test that fails such a test within seconds.
//
//	bubble.Test(t, func(t *testing.T) {
//		answer := make(chan string)
//		serve(t, answer)
//		require.Equal(t, "hello", <-answer) // fails when it never comes
//	})
//
// # Concurrency
//
// Each call makes a bubble of its own; calls may be made concurrently.
//
// # Guarantees
//
// A test whose bubble reaches [Lifetime] ends the process with a panic that says so, after the
// stacks of all goroutines. Nothing of the guard is left when the test ends.
package bubble
