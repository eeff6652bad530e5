package jsonrpc

// A Kind says what a message is.
type Kind uint8

const (
	KindInvalid       Kind = iota // not a message
	KindRequest                   // method and id: an answer is owed
	KindNotification              // method, no id: never answered
	KindResponse                  // id and result
	KindErrorResponse             // error, with the id if the peer could tell it
)

// String returns the kind in lower-case words.
func (k Kind) String() string {
	switch k {
	case KindRequest:
		return "request"
	case KindNotification:
		return "notification"
	case KindResponse:
		return "response"
	case KindErrorResponse:
		return "error response"
	}
	return "invalid"
}

// A Message is one JSON-RPC message. Its fields are written by [Scan] and share
// memory with the bytes scanned. The zero value is ready to be scanned into and
// a used one may be scanned into again.
type Message struct {
	Kind   Kind
	ID     ID     // zero for a notification, and for an error response to an unknown request
	Method string // decoded; empty in a response
	Params []byte // raw JSON; nil when there is none
	Result []byte // raw JSON; nil when there is none
	Error  []byte // raw JSON object; nil when there is none

	params params
}

// Param returns the raw value of a top-level member of params. It reports false
// when there is none with that name, or when params is not an object.
func (m *Message) Param(name string) (value []byte, ok bool) {
	return m.params.get(m.Params, name)
}

func (m *Message) reset() {
	m.Kind, m.ID, m.Method = KindInvalid, ID{}, ""
	m.Params, m.Result, m.Error = nil, nil, nil
	m.params.reset()
}

// Scan reads one message. On error m holds what could be told: the ID if there
// is exactly one valid id, the Method, the raw members, and the Kind if the
// fault leaves no doubt about it, so that a faulty request can be answered and
// a faulty notification or response ignored. The error's code is
//
//   - CodeParseError: b is not one valid JSON text; m is empty;
//   - CodeInvalidRequest: b is JSON but not a message, has an envelope member
//     twice, or is nested deeper than lim allows;
//   - CodeInvalidParams: the params of a request or notification are not an
//     object (MCP has no others), or have a member twice.
//
// See https://www.jsonrpc.org/specification and
// https://modelcontextprotocol.io/specification/2025-11-25/basic#messages.
func Scan(b []byte, lim Limits, m *Message) *Error {
	m.reset()
	s := scanner{b: b, limit: lim.depth()}
	i := skipSpace(b, 0)
	if i < len(b) && b[i] != '{' {
		if err := s.whole(i); err != nil {
			return err
		}
		return invalidRequest("the message is not an object")
	}
	e := envelope{m: m}
	if i = s.envelope(i, &e); i >= 0 {
		i = s.finish(i)
	}
	if i < 0 {
		m.reset()
		return syntaxError(b, ^i)
	}
	return e.verdict(&s)
}
