// Package soak holds no code, only a test under load: two thousand clients that call,
// cancel, drop, are asked, resume, listen and open and close sessions, over both
// transports and in both eras, with every answer checked.
//
//	make soak                    # ten minutes; SOAK_TIME=1h for longer
//
// make test does the same for some seconds with fewer clients.
//
// # Concurrency
//
// Each client is a goroutine that does one thing at a time.
//
// # Guarantees
//
// The test fails for a wrong, missing or unwanted answer, for a request, session, subscription or
// goroutine that is left at the end, and in a run of a minute or more for memory
// that grows.
package soak
