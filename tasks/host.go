package tasks

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// host is what the handler of a task, or of a call that may become one, talks to its
// client through. Progress is what people are told about the task; questions make it
// input_required; nothing else is sent, since nobody waits on a stream for it.
//
// Specification: extension io.modelcontextprotocol/tasks: progress and log messages are not
// sent for tasks.
type host struct {
	servercontext.Host // knows the request and its limits, and sends nothing
	task               *task
}

func (h *host) Progress(done, total float64, message string) {
	h.Host.Progress(done, total, message) // a limit may start anew
	h.task.progress(done, total, message)
}

func (h *host) Log(mcp.LoggingLevel, string, any) {}
func (h *host) LogEnabled(mcp.LoggingLevel) bool  { return false }
func (h *host) Notify(method string, _ any) error { return nil }

func (h *host) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, servercontext.ErrNotSupported
}

func (h *host) Input(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := encode(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	const key = "input"
	answers, err := h.task.ask(ctx, map[string]server.InputRequest{key: {Method: method, Params: raw}})
	if err != nil {
		return nil, err
	}
	return answers[key], nil
}
