package jsonrpc

import (
	"fmt"
	"iter"
	"math"
)

// IsBatch reports whether b starts like a batch: an array, where a message is
// an object.
func IsBatch(b []byte) bool {
	i := skipSpace(b, 0)
	return i < len(b) && b[i] == '['
}

// Batch returns the elements of a batch, each to be given to [Scan]. The whole
// batch is validated first, so that no part of a malformed one is acted upon:
// the error has CodeParseError when b is not JSON, and CodeInvalidRequest when
// it is not an array, is empty, or has more than lim.Batch elements. Depth is
// left to Scan, which can name the message that is too deep.
//
// Only revision 2025-03-26 of MCP has batches, see
// https://modelcontextprotocol.io/specification/2025-03-26/basic#batching.
func Batch(b []byte, lim Limits) (iter.Seq[[]byte], *Error) {
	if !IsBatch(b) {
		if err := Valid(b, lim); err != nil {
			return nil, err
		}
		return nil, invalidRequest("not a batch")
	}
	n := 0
	end := eachElement(b, func([]byte) bool { n++; return true })
	switch {
	case end < 0:
		return nil, syntaxError(b, ^end)
	case n == 0:
		return nil, invalidRequest("the batch is empty")
	case n > lim.batch():
		return nil, invalidRequest(fmt.Sprintf("the batch has more than %d messages", lim.batch()))
	}
	return func(yield func([]byte) bool) { eachElement(b, yield) }, nil
}

// eachElement walks an array and what follows it, which must be white space.
func eachElement(b []byte, visit func([]byte) bool) int {
	s := scanner{b: b, limit: math.MaxInt}
	i := skipSpace(b, skipSpace(b, 0)+1)
	if i < len(b) && b[i] == ']' {
		return s.finish(i + 1)
	}
	for done := false; !done; {
		end := s.value(i, 1)
		if end < 0 {
			return end
		}
		if !visit(b[i:end:end]) {
			return end
		}
		if i, done = s.more(end, ']'); i < 0 {
			return i
		}
	}
	return s.finish(i)
}
