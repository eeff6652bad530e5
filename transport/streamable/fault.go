package streamable

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	// errStreamGone is what a message gets that nobody can receive any more.
	errStreamGone = errors.New("streamable: the response stream is gone")
	// errNoStream is what a message gets whose request is answered in JSON.
	errNoStream = errors.New("streamable: the response is not an event stream")
)

// Header values, shared by all responses.
var (
	contentJSON   = []string{"application/json"}
	contentStream = []string{"text/event-stream"}
	cacheNever    = []string{"no-cache, no-transform"}
	accelOff      = []string{"no"}
)

// refuse answers a request that is refused before its message counts: with a
// JSON-RPC error that has no id.
func refuse(w http.ResponseWriter, status int, message string) {
	refuseID(w, status, jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, message, nil)
}

// refuseID answers the request id with a protocol error.
func refuseID(w http.ResponseWriter, status int, id jsonrpc.ID, code int, message string, data []byte) {
	// The write may fail because the client is gone; nobody is left to be told.
	body := jsonrpc.AppendError(nil, id, code, message, data)
	_ = writeJSON(w, status, body, []string{strconv.Itoa(len(body))})
}

// writeJSON writes a whole response. length is its length as a header has it.
func writeJSON(w http.ResponseWriter, status int, body []byte, length []string) error {
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["Content-Length"] = length
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}

// methodNotAllowed refuses a method. allow lists those that would do.
func methodNotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	refuse(w, http.StatusMethodNotAllowed, "use POST; GET and DELETE need the Mcp-Session-Id of a session")
}

func refuseDraining(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", "1")
	refuseID(w, http.StatusServiceUnavailable, jsonrpc.ID{}, jsonrpc.CodeInternalError,
		"the server is shutting down", []byte(`{"origin":"shutdown"}`))
}

// statusOf is the HTTP status of an answer with that JSON-RPC error code, 0 for a
// result. refused says that the request was refused before it was accepted.
//
// Specification: basic/transports/streamable-http (2026-07-28); earlier
// revisions answer a request that they have accepted with 200.
func statusOf(code int, stateless, refused bool) int {
	switch code {
	case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest:
		if stateless || refused {
			return http.StatusBadRequest
		}
	case mcp.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	case jsonrpc.CodeMethodNotFound:
		if stateless {
			return http.StatusNotFound
		}
	case jsonrpc.CodeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities:
		if stateless {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}
