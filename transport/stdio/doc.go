// Package stdio serves MCP over a stream of bytes: one JSON-RPC message a line,
// over standard input and output, pipes or sockets, in every protocol revision.
//
//	func main() {
//		s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
//		server.MustAddTool(s, &mcp.Tool{Name: "close_stale"}, closeStale)
//		if err := stdio.Serve(context.Background(), s, nil); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// # Concurrency
//
// One goroutine reads, and it waits for nothing but input: a cancel takes effect when its
// line has been read, whatever handlers do and whether or not the client reads
// what it was sent. Handlers run on goroutines of their own. What they write is
// queued, and written by a goroutine that exists while there is something to write;
// several lines that are ready leave in one write. Handlers wait when too much is
// queued ([Options.MaxPending]).
//
// # Guarantees
//
//   - Nothing but whole MCP messages, one a line, is written.
//   - No line ends the session, whatever is on it: what is malformed or too long is
//     answered with an error where an answer may be owed, and the next line
//     is served.
//   - The end of the input cancels what is running, at once and in silence. SIGINT,
//     SIGTERM and the end of ctx give it [Options.Grace] first, and its answers
//     are still written.
//   - Serving ends at the latest [Options.Deadline] after the cancel, whatever
//     handlers do.
//   - Memory is bounded, whatever is sent and whether or not it is read.
//
// Specification: basic/transports, stdio (2025-11-25, 2026-07-28).
package stdio
