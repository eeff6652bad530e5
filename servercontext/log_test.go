package servercontext_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func logging(least mcp.LoggingLevel) (*servercontext.Request, *host) {
	h := &host{least: servercontext.Severity(least)}
	return servercontext.New(servercontext.Options{Host: h}), h
}

func TestSeverity(t *testing.T) {
	before := 0
	for _, level := range []mcp.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
		require.Greater(t, servercontext.Severity(level), before)
		before = servercontext.Severity(level)
	}
	for _, level := range []mcp.LoggingLevel{"", "Debug", "warn", "fatal"} {
		require.Zero(t, servercontext.Severity(level))
	}
}

func TestLogger_Levels(t *testing.T) {
	for level, want := range map[slog.Level]mcp.LoggingLevel{
		-100: "debug", slog.LevelDebug: "debug", -1: "debug", slog.LevelInfo: "info", 1: "info", 2: "notice", 3: "notice",
		slog.LevelWarn: "warning", 7: "warning", slog.LevelError: "error", 11: "error", 12: "critical", 15: "critical", 16: "alert", 19: "alert", 20: "emergency", 100: "emergency",
	} {
		r, h := logging("debug")
		r.Logger("name").Log(t.Context(), level, "m")
		require.Equal(t, []logged{{want, "name", M{"msg": "m"}}}, h.logs, "%d", level)
	}
	r, h := logging("warning")
	r.Logger("").Info("not wanted")
	require.Empty(t, h.logs)
	r.Log("debug", "the host decides about these")
	require.Len(t, h.logs, 1)
}

type secret struct{}

func (secret) LogValue() slog.Value { return slog.StringValue("hidden") }

func TestLogger_Data(t *testing.T) {
	r, h := logging("debug")
	l := r.Logger("").With("a", 1).WithGroup("g").With("b", 2, slog.Group("empty")).WithGroup("").WithGroup("h")
	l.Info("m", "c", 3, slog.Group("", slog.Int("inline", 4)), slog.Attr{}, slog.Group("i", slog.Duration("d", time.Second)),
		"err", errors.New("broken"), "secret", secret{}, "nil", nil)
	require.Equal(t, M{
		"msg": "m", "a": int64(1), "g": M{"b": int64(2), "h": M{
			"c": int64(3), "inline": int64(4), "i": M{"d": "1s"}, "err": "broken", "secret": "hidden", "nil": nil,
		}},
	}, h.logs[0].data)
	l.Info("a group without attributes is left out")
	require.Equal(t, M{"msg": "a group without attributes is left out", "a": int64(1), "g": M{"b": int64(2)}}, h.logs[1].data)
}

// timed adds what slogtest wants to see and the protocol's messages leave to their
// receiver: level and time.
type timed struct {
	slog.Handler
	times *[]time.Time
}

func (h timed) Handle(ctx context.Context, r slog.Record) error {
	*h.times = append(*h.times, r.Time)
	return h.Handler.Handle(ctx, r)
}
func (h timed) WithAttrs(a []slog.Attr) slog.Handler { return timed{h.Handler.WithAttrs(a), h.times} }
func (h timed) WithGroup(g string) slog.Handler      { return timed{h.Handler.WithGroup(g), h.times} }

func TestLogger_Contract(t *testing.T) {
	r, h := logging("debug")
	var times []time.Time
	err := slogtest.TestHandler(timed{r.Logger("").Handler(), &times}, func() []map[string]any {
		var all []map[string]any
		for i, l := range h.logs {
			m := l.data.(M)
			m[slog.LevelKey] = l.level
			if !times[i].IsZero() {
				m[slog.TimeKey] = times[i]
			}
			all = append(all, m)
		}
		return all
	})
	require.NoError(t, err)
}
