// Package gosdk runs what was written for the official Go SDK
// (github.com/modelcontextprotocol/go-sdk) on a Heed server: tool, prompt and
// resource handlers, and middleware, unchanged. Their session calls (progress, log, elicitation,
// sampling, roots, ping) go to the request they belong to and end with it.
//
// A server is ported by changing how it is made and how it is served:
//
//	s := gosdk.NewServer(&mcp.Implementation{Name: "greeter", Version: "1.0.0"}, nil, nil)
//	s.AddReceivingMiddleware(logging)
//	gosdk.MustAddTool(s, &mcp.Tool{Name: "greet"}, greet) // was mcp.AddTool
//	err := gosdk.Serve(ctx, s.Server, &mcp.StdioTransport{})
//
// Handlers of both kinds live side by side: [AddTool], [AddRawTool], [AddPrompt],
// [AddResource], [AddResourceTemplate] and [Use] take any Heed server, and any Heed
// transport serves a [Server]'s embedded one.
//
// # Sessions
//
// The *mcp.ServerSession in a request is a virtual one, made for that request.
// What is called on it concerns that request, whatever context is passed, so
// that slog's Info and context.Background() reach the right stream as well. Code that
// keeps something per session should key it by ServerSession.ID or, better, put it into
// servercontext's Session; two requests of one session have two pointers. A session
// that is kept and used within a later request of the same Heed session acts
// for that request, if the later request's context is passed. Outside of requests
// notifications are dropped and calls return [ErrNoRequest]. Close and Wait do nothing.
//
// InitializeParams tells the client's own description in both eras. In the
// stateless era it names version 2025-11-25, so that the session's calls to the client are
// not refused: there they make the request wait for a retry that brings the
// input. ServerRequest.ProtocolVersion tells the revision that is really spoken.
//
// # Differences
//
// What the official SDK leaves open, Heed's rules decide:
//
//   - A session call of a cancelled request returns its cancellation at once, a
//     *cancellation.Error. NotifyProgress does so too, so it is a checkpoint.
//   - Progress values must increase, else they are dropped, as are reports for a token
//     that is not the request's; reports in quick succession are merged.
//   - Log messages of a request that was cancelled or has ended are dropped.
//   - CreateMessage needs the client's sampling capability, requests with tools
//     sampling.tools, ListRoots roots; forms for Elicit are checked before they are sent.
//   - Arguments are validated against the tool's input schema for raw tools too,
//     and structured content against the output schema; what does not fit is a tool
//     error, worded by Heed. Raw handlers still get the arguments as they were sent, typed
//     ones with defaults applied.
//   - Output that is no object is wrapped as {"result": …} for revisions before 2026-07-28,
//     which know only objects, and its schema with it. The text copy is the encoding of the
//     value as it is, with its members in order and its numbers exact.
//   - An error of a raw tool that carries no code is answered with -32603 instead
//     of 0. An error that came from the client keeps its text but not its code.
//   - Missing arguments that a prompt requires are refused before its handler runs.
//   - notifications/cancelled does not pass through middleware.
//   - Methods that the official SDK does not know pass through middleware as
//     [CustomParams] and [CustomResult].
//
// # Concurrency
//
// All functions and methods may be called concurrently, also while requests run.
//
// # Guarantees
//
//   - A session call acts for one request, never for another one that runs at the
//     same time, and nothing it does outlives that request.
//   - A middleware sees the params that were sent, and what it changes in params or results
//     is what the inner handler or the client gets; what it leaves alone, unknown
//     members included, passes on byte for byte.
//   - Input and output schemas of typed tools are inferred as the official SDK
//     does, so that they are the same after a migration.
//   - Nothing runs in the background: an idle session costs a few hundred bytes.
package gosdk
