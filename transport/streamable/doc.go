// Package streamable serves an MCP server over HTTP: handshake-era sessions
// (2025-03-26 to 2025-11-25) and the stateless era (2026-07-28) side by side, on one
// path and with one configuration.
//
//	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
//	h := streamable.NewHandler(s, nil)
//	mux := http.NewServeMux()
//	mux.Handle("/mcp", h)
//	srv := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
//	go srv.ListenAndServe()
//
//	<-ctx.Done()
//	h.Shutdown(grace)   // answers or cancels what is running, ends the streams
//	srv.Shutdown(grace) // closes the connections
//
// # Cancellation
//
// In the stateless era closing the response is the cancel, whether it is answered
// as JSON or as an event stream. In the handshake era a POSTed notifications/cancelled
// is, within the session and the principal; a dropped connection is none, since
// the client may resume the stream with Last-Event-ID, unless
// [Options.DisconnectGrace] sets a limit. DELETE cancels with the session.
//
// A cancelled request's response ends at once without an answer, even while its
// handler runs on: as an event stream that ends, or, where the client takes none,
// with status 204.
//
// # Form of the answer
//
// A request is answered in JSON unless something is sent ahead of the answer or
// the call stays silent for [Options.StreamAfter]; then the response is an event
// stream. A client that accepts only JSON gets JSON.
//
// # Safety
//
// Host and Origin are checked (403), bodies and their nesting are bounded (413,
// 400), sessions and requests in flight are bounded (503), and writes to clients that do not read
// end by a deadline. [Auth] demands bearer tokens. The timeouts for reading are
// the http.Server's: set ReadHeaderTimeout, and ReadTimeout where
// clients are not trusted to finish what they send.
//
// # Concurrency
//
// A [Handler] serves any number of requests concurrently; its methods may be
// called at any time. A request of the stateless era runs on the goroutine of its
// ServeHTTP where that is possible, one of a session on a goroutine of its own.
//
// # Guarantees
//
//   - Nothing is written to a response after its ServeHTTP has returned, and
//     writes to one response never overlap.
//   - A request of one session, or of one client of the stateless era, cannot be
//     cancelled by another.
//   - A session with a running request or an open stream is neither expired
//     nor evicted.
//   - After a session has ended, its id is answered 404.
//
// It is not guaranteed that a dropped connection is noticed at once: that takes a
// packet from the client's side, or a write, at the latest the next keep-alive
// comment, that cannot be delivered.
package streamable
