package servercontext

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	// ErrNoClient is returned when a handler asks the client for something and
	// there is no client to ask: the Request was made by a test without a Host.
	ErrNoClient = errors.New("servercontext: no client to ask")

	// ErrNotSupported is returned when the request's transport or protocol
	// revision has no way to do what was asked.
	ErrNotSupported = errors.New("servercontext: not supported by this transport or protocol revision")
)

// nobody is the Host of a Request without a server.
type nobody struct{ id string }

func (n nobody) RequestID() string                        { return n.id }
func (nobody) Progress(float64, float64, string)          {}
func (nobody) Log(mcp.LoggingLevel, string, any)          {}
func (nobody) LogEnabled(mcp.LoggingLevel) bool           { return false }
func (nobody) Notify(string, any) error                   { return nil }
func (nobody) ResourceUpdated(string)                     {}
func (nobody) SetTimeout(time.Duration)                   {}
func (nobody) CloseStream(time.Duration) error            { return ErrNotSupported }
func (nobody) InputResponses() map[string]json.RawMessage { return nil }
func (nobody) RequestState() string                       { return "" }
func (nobody) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, ErrNoClient
}
func (nobody) Input(context.Context, string, any) (json.RawMessage, error) {
	return nil, ErrNoClient
}
