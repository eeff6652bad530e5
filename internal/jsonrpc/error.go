package jsonrpc

import "fmt"

// The codes that JSON-RPC 2.0 defines.
const (
	CodeParseError     = -32700 // the text is not JSON
	CodeInvalidRequest = -32600 // the JSON is not a message
	CodeMethodNotFound = -32601 // the method does not exist
	CodeInvalidParams  = -32602 // params is not what the method takes
	CodeInternalError  = -32603 // the receiver failed
)

// An Error says why bytes are not an acceptable message, in the form in which
// the sender may be told: the message quotes nothing longer than one byte of
// the input. Functions return a concrete *Error, nil when all is well; it must
// be compared with nil before it is assigned to an error.
type Error struct {
	Code    int
	Message string
}

// Error returns the message and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func invalidRequest(why string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "invalid request: " + why}
}

func invalidParams(why string) *Error {
	return &Error{Code: CodeInvalidParams, Message: "invalid params: " + why}
}

func tooDeep(limit int) *Error {
	return invalidRequest(fmt.Sprintf("nested deeper than %d levels", limit))
}

// syntaxError describes the first byte of b that cannot belong to a JSON text.
func syntaxError(b []byte, at int) *Error {
	var why string
	switch {
	case at >= len(b):
		why = "unexpected end of input"
	case b[at] >= 0x80:
		why = fmt.Sprintf("unexpected byte 0x%02x", b[at])
	default:
		why = fmt.Sprintf("unexpected %q", b[at])
	}
	return &Error{Code: CodeParseError, Message: fmt.Sprintf("parse error: %s at offset %d", why, min(at, len(b)))}
}
