// Package wire speaks JSON-RPC as it stands on the wire, without an SDK: over streams
// of lines, processes and streamable HTTP. Everything that is sent and received
// is written down in a [Log], in order, and it is the log that is asked for what
// has come.
//
//	log := wire.NewLog()
//	process, err := wire.Start([]string{"my-server"}, nil)
//	if err != nil {
//		return err
//	}
//	defer process.Kill()
//	stream := wire.NewStream(log, process.Stdout, process.Stdin)
//	stream.Send([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
//	pong, ok := log.Wait(ctx, 0, func(e wire.Entry) bool { return e.Message.IsAnswerTo("1") })
//
// # Concurrency
//
// Everything may be used by any number of goroutines. Streams and exchanges are
// read by goroutines of their own, which end when they have been closed.
//
// # Guarantees
//
//   - What is logged as received is kept as it was on the wire, byte for byte.
//   - Memory is bounded: a log that is full takes no more and says so, and whatever fills it
//     is read no further.
//   - [Process.Kill] kills the whole process group.
package wire
