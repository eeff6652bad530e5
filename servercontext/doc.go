// Package servercontext holds what a handler may know about the request it
// serves, and what it may do for it: report progress, log, ask the client for
// input, notify.
//
// Every handler of a Heed server has the shape
//
//	func(ctx context.Context, req *servercontext.Request, in In) (Out, error)
//
// and may ignore req. Code further down the stack, which only has the context,
// finds the request with [FromContext]:
//
//	func importRows(ctx context.Context, rows []Row) error {
//		req, _ := servercontext.FromContext(ctx)
//		for i, row := range rows {
//			if err := req.Progress(ctx, float64(i), float64(len(rows)), row.Name); err != nil {
//				return err // the request was cancelled
//			}
//			…
//		}
//	}
//
// A nil *Request is valid: it knows nothing, its Progress is a plain
// checkpoint, and it has no client to ask.
//
// # Concurrency
//
// All methods of a Request may be called by several goroutines at once, and
// after the request has ended; what they would send then is dropped.
//
// # Guarantees
//
//   - From the moment a cancel of the request was received, nothing that a
//     Request's methods would send reaches the peer.
//   - Calls to the client end with the request: when it is cancelled, they return
//     its [cancellation.Error] at once, whatever context they were given.
//   - A call that needs a capability which the client did not declare fails
//     before anything is sent.
package servercontext
