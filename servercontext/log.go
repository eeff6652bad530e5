package servercontext

import (
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The protocol's log levels, from the least to the most severe.
//
// Specification: server/utilities/logging.
const (
	LevelDebug     mcp.LoggingLevel = "debug"
	LevelInfo      mcp.LoggingLevel = "info"
	LevelNotice    mcp.LoggingLevel = "notice"
	LevelWarning   mcp.LoggingLevel = "warning"
	LevelError     mcp.LoggingLevel = "error"
	LevelCritical  mcp.LoggingLevel = "critical"
	LevelAlert     mcp.LoggingLevel = "alert"
	LevelEmergency mcp.LoggingLevel = "emergency"
)

var severities = map[mcp.LoggingLevel]int{
	LevelDebug: 1, LevelInfo: 2, LevelNotice: 3, LevelWarning: 4,
	LevelError: 5, LevelCritical: 6, LevelAlert: 7, LevelEmergency: 8,
}

// Severity orders the protocol's log levels from 1 (debug) to 8 (emergency).
// It is 0 for anything else.
func Severity(level mcp.LoggingLevel) int { return severities[level] }

// Log sends a log message with data, any JSON value, to the client. It is
// silent unless the client asked for the level: in the handshake era with
// logging/setLevel, in the stateless era in the request's _meta.
//
// Specification: server/utilities/logging.
func (r *Request) Log(level mcp.LoggingLevel, data any) {
	r.options().Host.Log(level, "", data)
}

// LogEnabled reports whether the client asked for messages of this level.
func (r *Request) LogEnabled(level mcp.LoggingLevel) bool {
	return r.options().Host.LogEnabled(level)
}

// Logger returns a slog logger whose records go to the client under name, as
// [Request.Log] sends them; data is an object of the message, under "msg",
// and the attributes. slog's levels map to debug, info, warning and error, those between
// and above to notice, critical, alert and emergency (2, 9, 10 and 11 above Info
// or Error as the official Go SDK has them: 2, 12, 16 and 20).
func (r *Request) Logger(name string) *slog.Logger {
	return slog.New(&logHandler{host: r.options().Host, name: name})
}

// logHandler is a slog.Handler. Attributes are resolved into a nested map when
// a record is handled; groups is the path at which further ones are put.
type logHandler struct {
	host   Host
	name   string
	groups []string
	attrs  []groupedAttr
}

type groupedAttr struct {
	groups []string
	attr   slog.Attr
}

func levelOf(l slog.Level) mcp.LoggingLevel {
	switch {
	case l < slog.LevelInfo:
		return LevelDebug
	case l < mcp.LevelNotice:
		return LevelInfo
	case l < slog.LevelWarn:
		return LevelNotice
	case l < slog.LevelError:
		return LevelWarning
	case l < mcp.LevelCritical:
		return LevelError
	case l < mcp.LevelAlert:
		return LevelCritical
	case l < mcp.LevelEmergency:
		return LevelAlert
	}
	return LevelEmergency
}

func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool {
	return h.host.LogEnabled(levelOf(l))
}

func (h *logHandler) Handle(_ context.Context, rec slog.Record) error {
	data := map[string]any{"msg": rec.Message}
	for _, a := range h.attrs {
		put(data, a.groups, a.attr)
	}
	rec.Attrs(func(a slog.Attr) bool {
		put(data, h.groups, a)
		return true
	})
	h.host.Log(levelOf(rec.Level), h.name, data)
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append([]groupedAttr(nil), h.attrs...)
	for _, a := range attrs {
		next.attrs = append(next.attrs, groupedAttr{h.groups, a})
	}
	return &next
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.groups = append(append([]string(nil), h.groups...), name)
	return &next
}

func put(into map[string]any, groups []string, a slog.Attr) {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if v.Kind() == slog.KindGroup {
		members := v.Group()
		if len(members) == 0 {
			return
		}
		if a.Key != "" {
			groups = append(append([]string(nil), groups...), a.Key)
		}
		for _, m := range members {
			put(into, groups, m)
		}
		return
	}
	for _, g := range groups {
		inner, ok := into[g].(map[string]any)
		if !ok {
			inner = map[string]any{}
			into[g] = inner
		}
		into = inner
	}
	into[a.Key] = logValue(v)
}

func logValue(v slog.Value) any {
	switch v.Kind() {
	case slog.KindDuration:
		return v.Duration().String()
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return err.Error()
		}
	}
	return v.Any()
}
