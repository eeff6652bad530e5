package servercontext

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Host does the sending for a Request. A server implements it once per
// request; [Options] takes another for tests.
//
// Implementations must be safe for concurrent use and must drop, without an
// error, what may no longer be sent.
type Host interface {
	// RequestID is the id of the request that currently continues the work, as JSON
	// text: a retry's, once one did; "" for a notification.
	RequestID() string

	// Progress reports progress to the peer if it asked for it.
	Progress(done, total float64, message string)

	// Log sends a log message if the peer asked for its level.
	Log(level mcp.LoggingLevel, logger string, data any)

	// LogEnabled tells whether Log would send at that level.
	LogEnabled(level mcp.LoggingLevel) bool

	// Notify sends a notification that belongs to the request.
	Notify(method string, params any) error

	// Call sends a request to the client and waits for its result. It ends
	// with ctx, with the request, and by the host's own limit.
	Call(ctx context.Context, method string, params any) (json.RawMessage, error)

	// Input asks the client for input in the way its protocol revision has:
	// by a request of its own, or by answering this one with input_required.
	Input(ctx context.Context, method string, params any) (json.RawMessage, error)

	// InputResponses returns the raw answers that a retry brought, by key.
	InputResponses() map[string]json.RawMessage

	// RequestState returns the state that a retry brought back, verified.
	RequestState() string

	// ResourceUpdated tells subscribers of uri that the resource changed.
	ResourceUpdated(uri string)

	// SetTimeout limits the request to d from now; see [Request.SetTimeout].
	SetTimeout(d time.Duration)

	// CloseStream closes the response stream so that the client polls for the
	// rest after retry, where the transport can do that.
	CloseStream(retry time.Duration) error
}
