package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// host is what a handler's Request does its sending with: a call, seen from the inside.
type host Call

func (h *host) call() *Call { return (*Call)(h) }

func (h *host) Progress(done, total float64, message string) {
	h.call().reportProgress(done, total, message)
}

func (h *host) LogEnabled(level mcp.LoggingLevel) bool {
	severity := servercontext.Severity(level)
	least := h.call().logThreshold()
	return least > 0 && severity >= least
}

func (h *host) Log(level mcp.LoggingLevel, logger string, data any) {
	if !h.LogEnabled(level) {
		return
	}
	c := h.call()
	if !c.mayLog() {
		return
	}
	encoded, err := appendJSON(nil, data)
	if err != nil {
		c.log().Error("log message for the client cannot be encoded", "error", err)
		return
	}
	params := getBuffer()
	defer putBuffer(params)
	b := append(*params, `{"level":"`...)
	b = append(b, level...)
	b = append(b, '"')
	if logger != "" {
		b = append(b, `,"logger":`...)
		b = jsonrpc.AppendString(b, logger)
	}
	b = append(b, `,"data":`...)
	b = append(b, encoded...)
	b = append(b, '}')
	*params = b
	if err := c.notify("notifications/message", b); err != nil {
		c.log().Debug("log message could not be sent", "error", err)
	}
}

// logBurst is how many log messages of one request are sent without regard to their rate.
const logBurst = 256

// mayLog counts a log message of the request, and tells whether it may be sent.
//
// Specification: server/utilities/logging: servers should limit the rate of log messages.
func (c *Call) mayLog() bool {
	interval := c.server.options.LogInterval
	if interval <= 0 {
		return true
	}
	c.mu.Lock()
	late := c.logs.take(time.Since(c.accepted).Seconds(), interval.Seconds(), logBurst) > 0
	first := late && !c.logsDropped
	c.logsDropped = c.logsDropped || late
	c.mu.Unlock()
	if first {
		c.log().Warn("dropped log messages for the client, there are too many", "interval", interval)
	}
	return !late
}

// logThreshold is the severity from which on the peer wants log messages; 0:
// it wants none.
func (c *Call) logThreshold() int {
	if !advertisesLogging(c.reg) {
		return 0
	}
	if c.rev.stateless {
		raw, _ := jsonrpc.Get(c.params.meta, mcp.MetaKeyLogLevel)
		level, _ := jsonrpc.Unquote(raw)
		return servercontext.Severity(mcp.LoggingLevel(level))
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.session.level
}

func (h *host) Notify(method string, params any) error {
	raw, err := encodeParams(params)
	if err != nil {
		return err
	}
	return h.call().notify(method, raw)
}

func (h *host) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if h.rev.stateless {
		return nil, servercontext.ErrNotSupported
	}
	return h.call().ask(ctx, method, params)
}

func (h *host) Input(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if h.rev.stateless {
		return nil, errNoInput // a method that may ask has an operationHost
	}
	if err := h.rev.supports(params); err != nil {
		return nil, err
	}
	return h.call().ask(ctx, method, h.rev.inputParams(params))
}

func (h *host) InputResponses() map[string]json.RawMessage { return h.call().answered().responses }

func (h *host) RequestState() string { return h.call().answered().state }

func (h *host) RequestID() string { return h.id.String() }

func (h *host) ResourceUpdated(uri string) { h.server.ResourceUpdated(uri) }

func (h *host) SetTimeout(d time.Duration) { h.call().setLimit(d) }

func (h *host) CloseStream(retry time.Duration) error {
	if h.closeStream == nil {
		return servercontext.ErrNotSupported
	}
	return h.closeStream(retry)
}
