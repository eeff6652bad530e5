// Package doctest keeps the documentation true: its test compares every code
// fence that names its source with that source, and follows every relative link.
//
// A fence names its source in the line above it:
//
//	<!-- snippet: examples/hello/main.go#server -->
//
// The source marks the region with comments, which may be indented:
//
//	// region server
//	…
//	// endregion
//
// Without a region the whole file is meant. `go test ./internal/doctest -update`
// rewrites the fences from their sources.
package doctest
