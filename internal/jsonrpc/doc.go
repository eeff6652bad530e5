// Package jsonrpc reads and writes JSON-RPC 2.0 messages as raw bytes.
//
// [Scan] walks a message once. In that pass it validates the whole text, finds
// the envelope's members and the top-level members of params, and decides what
// kind of message it is. Nothing is decoded that nobody asked for: Params,
// Result and Error are slices of the input.
//
//	var m jsonrpc.Message
//	if err := jsonrpc.Scan(line, jsonrpc.Limits{}, &m); err != nil {
//		out = jsonrpc.AppendError(out, m.ID, err.Code, err.Message, nil)
//		return out
//	}
//	if name, ok := m.Param("name"); ok && m.Kind == jsonrpc.KindRequest {
//		out = jsonrpc.OpenResponse(out, m.ID)
//		out = append(out, name...)
//		out = jsonrpc.CloseResponse(out)
//	}
//
// # Aliasing
//
// Everything that comes out of [Scan], [Batch], [Members], [Get], [ParseID]
// and [Unquote] may share memory with the bytes that went in, strings and ids
// included. Those bytes must never be modified or reused afterwards. An ID
// that outlives its message should be kept as [ID.Clone], or it keeps the
// whole message alive.
//
// # Concurrency
//
// The package has no state. Every function may be called from any number of
// goroutines; a [Message] may be read, but not scanned into, by several.
//
// # Guarantees
//
//   - Scan accepts a text only if it is one JSON value by the grammar of
//     RFC 8259, in valid UTF-8, with nothing but white space around it.
//     Anything else is [CodeParseError] with no id, as JSON-RPC demands.
//   - Names match case-sensitively, after escapes are decoded. An envelope
//     member that appears twice is [CodeInvalidRequest]; a member of params
//     that appears twice is [CodeInvalidParams]. No two readers of an accepted
//     message can disagree about which of two values counts.
//   - Ids are exact. Numbers are equal if their texts are (1, 1.0 and 1e0 are
//     three ids), strings if their values are, and a number never equals a
//     string. An id is written as it was received, except that a string loses
//     escapes it did not need: such an id is the same JSON string, and equal
//     ids have one spelling.
//   - Work is linear in the length of the input, whatever it holds. The stack
//     used does not depend on the input; nesting beyond [Limits] is refused
//     with the id of the message, not by giving up on it.
//   - Scan allocates nothing for a message without escapes in its id, method
//     and top-level names and with at most 16 members of params.
//   - What the Append functions write is one line, provided that it is given
//     valid JSON: no raw CR or LF survives from the caller's bytes either way.
//
// A lone surrogate escape such as "\ud800" is allowed by the grammar and so
// allowed in values. It has no Unicode text, so [Unquote] refuses it, and it
// is refused in an id or a method.
package jsonrpc
