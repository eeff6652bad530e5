package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// operationHost is what an operation's handler does its sending with: whatever
// request attends at the moment. While none does there is nobody to send to.
type operationHost operation

func (h *operationHost) attending() *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	return (*host)(h.operation().current)
}

func (h *operationHost) operation() *operation { return (*operation)(h) }

func (h *operationHost) RequestID() string {
	if c := h.attending(); c != nil {
		return c.RequestID()
	}
	return (*host)(h.first).RequestID()
}

func (h *operationHost) Progress(done, total float64, message string) {
	if c := h.attending(); c != nil {
		c.Progress(done, total, message)
	}
}

func (h *operationHost) Log(level mcp.LoggingLevel, logger string, data any) {
	if c := h.attending(); c != nil {
		c.Log(level, logger, data)
	}
}

func (h *operationHost) LogEnabled(level mcp.LoggingLevel) bool {
	c := h.attending()
	return c != nil && c.LogEnabled(level)
}

func (h *operationHost) Notify(method string, params any) error {
	if c := h.attending(); c != nil {
		return c.Notify(method, params)
	}
	return nil
}

func (h *operationHost) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, servercontext.ErrNotSupported
}

func (h *operationHost) Input(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return h.operation().ask(ctx, method, params)
}

func (h *operationHost) InputResponses() map[string]json.RawMessage {
	return h.first.answered().responses
}
func (h *operationHost) RequestState() string       { return h.first.answered().state }
func (h *operationHost) ResourceUpdated(uri string) { (*host)(h.first).ResourceUpdated(uri) }

func (h *operationHost) SetTimeout(d time.Duration) {
	if c := h.attending(); c != nil {
		c.SetTimeout(d)
	}
}

func (h *operationHost) CloseStream(retry time.Duration) error {
	if c := h.attending(); c != nil {
		return c.CloseStream(retry)
	}
	return servercontext.ErrNotSupported
}
