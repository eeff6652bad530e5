// Package server is the runtime of an MCP server: it accepts requests in every
// protocol revision, threads a cancellation token through each one's context,
// and decides by the token's state alone what reaches the wire.
//
//	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
//
//	type In struct {
//		Region string `json:"region" jsonschema_description:"where to look"`
//	}
//	err := server.AddTool(s, &mcp.Tool{Name: "close_stale"},
//		func(ctx context.Context, req *servercontext.Request, in In) (string, error) {
//			for i := range 100 {
//				if err := req.Progress(ctx, float64(i), 100, ""); err != nil {
//					return "", err // stopped: nothing is written to the client any more
//				}
//			}
//			return "closed", nil
//		})
//
// A transport then serves it: stdio.Serve(ctx, s, nil), or the http.Handler
// of streamable.NewHandler(s, nil).
//
// # The way of a request
//
// A transport reads bytes and gives them to [Session.Receive] (accept.go). The
// message is scanned once, its revision is told (stateless.go, revision.go), its
// method looked up (method.go), and a request becomes a [Call], which is registered
// with its session (session.go) on the goroutine that read it. The call runs
// its handler and is then settled: answered, or silenced (call.go). What it sends
// goes to the [Reply] that the transport gave along.
//
// # The way of a change
//
// Everything that is registered lives in one immutable snapshot (registry.go). A
// registration replaces it and publishes an event (event.go), of which the sessions of the
// handshake era (announce.go) and the subscriptions of the stateless era (listen.go)
// tell their clients. Lists, their pages and encodings are cached with the
// snapshot (listing.go, page.go), unless a filter (filter.go) or a lister (lister.go) makes
// them depend on the request.
//
// # Concurrency
//
// Handlers run concurrently, each on its own goroutine, bounded by
// [Options.MaxConcurrent] and [ToolOptions.MaxConcurrent]. Cancels are applied on
// the reading goroutine, in the order of reading: a cancel can neither overtake nor be
// overtaken. All exported functions and methods are safe for concurrent use.
//
// # Guarantees
//
//   - Each request is answered exactly once, or, once its peer has cancelled it
//     or is gone, never.
//   - From the moment a cancel was received nothing is sent for its request, save
//     cancels of nested requests and the answer to a timeout or shutdown.
//   - initialize cannot be cancelled.
//   - A handler that panics harms no other request.
//
// It is not guaranteed that a handler stops: one that never looks at its token
// runs on. It is then reported (Options.Grace, Observer) and holds up neither
// its stream nor a shutdown.
package server
