// Package transporttest tries from outside whether a server keeps the rules of
// cancellation, over any transport: streams of lines and streamable HTTP, in every
// era of the protocol. It speaks JSON-RPC itself (package wire), so that no SDK
// is between a rule and the wire.
//
// Authors of transports run the rules as subtests, with a server that has the
// fixtures of package fixture:
//
//	func TestContract(t *testing.T) {
//		transporttest.Run(t, &transporttest.Target{Dial: dial}, transporttest.Options{
//			Settings: transporttest.Streams, Bubble: true,
//		})
//	}
//
// A server with the extension io.modelcontextprotocol/tasks is tried for tasks/cancel as well; an
// [Endpoint] with a second principal also for the isolation of tasks.
//
// Any other server can be tried too, a process or a URL ([Command], [Check]): rules that
// look behind the wire are skipped then, and a tool that takes a few seconds takes
// the place of the fixtures.
//
// # Verdicts
//
// A [Verdict] is pass, fail, skip or error, with what was sent and received as
// evidence. A rule that cannot be judged is skipped, with the reason; it never
// passes.
//
// # Concurrency
//
// Rules share nothing but the server, and may be tried at the same time. [Check] does
// so; those that look at the whole server are tried alone.
//
// # Guarantees
//
//   - Each rule ends by its limit, whatever the server does: it may hang, flood,
//     print garbage, close early, never answer or die.
//   - What a rule has opened is closed when it ends; of a [Command] the whole
//     process group is killed.
//   - What a server sends is bounded before it is kept.
//
// Specification: basic/utilities/cancellation (2025-11-25), basic/patterns/cancellation
// (2026-07-28), and the pages of the transports.
package transporttest
