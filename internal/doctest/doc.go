// Package doctest keeps the documentation true: its test compares every code
// fence and table that names its source with that source, follows every relative link and anchor,
// and holds pages to their places in the navigation.
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
// Without a region the whole file is meant. A table names the heading above the table of another
// page that it quotes, and the rows, by their first cells:
//
//	<!-- table: docs/performance.md#targets
//	stdio, 64 outstanding, calls per second
//	-->
//
// `go test ./internal/doctest -update` rewrites fences and tables from their sources.
//
// # Concurrency
//
// The functions keep no state and may be called from any goroutine.
//
// # Guarantees
//
//   - A marked fence or table that differs from its source by one byte is found.
//   - Go code without a mark is found, but in decision records.
//   - An anchor that code hosts and the site would make differently is not taken for one.
//   - Links to other sites are not followed.
package doctest
