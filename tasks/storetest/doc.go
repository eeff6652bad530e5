// Package storetest checks implementations of [tasks.Store].
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, max int) tasks.Store {
//			return mystore.New(max)
//		})
//	}
//
// # Concurrency
//
// Run uses one store from many goroutines at once; with the race detector on it
// finds what a store does not guard.
//
// # Guarantees
//
// Every rule that the documentation of [tasks.Store] has is checked by a subtest, whose
// name says which.
package storetest
