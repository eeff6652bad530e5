package servercontext_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// M is a JSON object of a test.
type M = map[string]any

// host is a servercontext.Host that records and answers as it is told.
type host struct {
	logs    []logged
	least   int                                                                  // severity from which on messages are wanted; 0: none
	asked   []string                                                             // methods, in order
	answer  func(method string, params json.RawMessage) (json.RawMessage, error) // nil: an empty object
	reports []float64
	raw     map[string]json.RawMessage
}

type logged struct {
	level  mcp.LoggingLevel
	logger string
	data   any
}

func (h *host) RequestID() string { return "7" }

func (h *host) Progress(done, _ float64, _ string) { h.reports = append(h.reports, done) }

func (h *host) LogEnabled(level mcp.LoggingLevel) bool {
	return h.least > 0 && servercontext.Severity(level) >= h.least
}

func (h *host) Log(level mcp.LoggingLevel, logger string, data any) {
	h.logs = append(h.logs, logged{level, logger, data})
}

func (h *host) Notify(method string, _ any) error { h.asked = append(h.asked, method); return nil }

func (h *host) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return h.Input(ctx, method, params)
}

func (h *host) Input(_ context.Context, method string, params any) (json.RawMessage, error) {
	h.asked = append(h.asked, method)
	raw, err := json.Marshal(params)
	if err != nil || h.answer == nil {
		return json.RawMessage(`{}`), err
	}
	return h.answer(method, raw)
}

func (h *host) InputResponses() map[string]json.RawMessage { return h.raw }
func (h *host) RequestState() string                       { return "state" }
func (h *host) ResourceUpdated(uri string)                 { h.asked = append(h.asked, "updated "+uri) }
func (h *host) SetTimeout(time.Duration)                   { h.asked = append(h.asked, "timeout") }
func (h *host) CloseStream(time.Duration) error            { return nil }

var _ servercontext.Host = (*host)(nil)
