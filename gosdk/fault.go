package gosdk

import (
	"errors"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Errors cross the border in both directions. The official SDK looks for a
// *jsonrpc.Error in a session call's error, Heed takes one in a handler's error for
// the answer; a client's error must not become the server's answer by way of the two.

// clientError is an error that the client answered a session call with.
type clientError struct{ peer *server.PeerError }

func (e *clientError) Error() string { return e.peer.Error() }

// Unwrap gives official code the client's error.
func (e *clientError) Unwrap() error { return e.peer.Err }

// plainError is an error without the *jsonrpc.Error that it may hold.
type plainError struct{ err error }

func (e *plainError) Error() string        { return e.err.Error() }
func (e *plainError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *plainError) As(target any) bool {
	if _, ok := target.(**sdkrpc.Error); ok {
		return false
	}
	return errors.As(e.err, target)
}

// codedError is an error that is to be a protocol error.
type codedError struct {
	err   error
	coded *sdkrpc.Error
}

func (e *codedError) Error() string   { return e.err.Error() }
func (e *codedError) Unwrap() []error { return []error{e.coded, e.err} }

// typedToolError is what the error of a typed tool handler means: a tool error,
// unless it is a protocol error itself.
func typedToolError(err error) error {
	var rpc *sdkrpc.Error
	if err == nil || !errors.As(err, &rpc) || err == error(rpc) {
		return err
	}
	return &plainError{err}
}

// protocolError is what the error of a raw tool handler, or of a middleware, means: a
// protocol error, with the code that it carries unless that is a client's.
func protocolError(req *servercontext.Request, err error) error {
	if err == nil || req.Cancelled() {
		return err // once cancelled, only the cancellation counts
	}
	var rpc *sdkrpc.Error
	if !errors.As(err, &rpc) || isClients(err) {
		return &codedError{err: &plainError{err}, coded: &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: err.Error()}}
	}
	if err == error(rpc) {
		return err
	}
	return &codedError{err: err, coded: &sdkrpc.Error{Code: rpc.Code, Message: err.Error(), Data: rpc.Data}}
}

// serverError is what the error of a prompt or resource handler means: the same
// as ever, but a client's code is not passed on.
func serverError(err error) error {
	if err != nil && isClients(err) {
		return &plainError{err}
	}
	return err
}

func isClients(err error) bool {
	var client *clientError
	return errors.As(err, &client)
}
