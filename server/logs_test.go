package server_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// logs keeps what a server logs for its operators.
type logs struct {
	mu  sync.Mutex
	all []logged
}

type logged struct {
	Level   slog.Level
	Message string
	Attrs   map[string]any
}

func (l *logs) Logger() *slog.Logger { return slog.New(&logsHandler{logs: l}) }

// Find returns the records whose message contains text.
func (l *logs) Find(text string) []logged {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []logged
	for _, r := range l.all {
		if strings.Contains(r.Message, text) {
			found = append(found, r)
		}
	}
	return found
}

// Above returns the records of a level or a more severe one.
func (l *logs) Above(level slog.Level) []logged {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []logged
	for _, r := range l.all {
		if r.Level >= level {
			found = append(found, r)
		}
	}
	return found
}

type logsHandler struct {
	logs  *logs
	attrs []slog.Attr
}

func (h *logsHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logsHandler) Handle(_ context.Context, rec slog.Record) error {
	r := logged{Level: rec.Level, Message: rec.Message, Attrs: map[string]any{}}
	for _, a := range h.attrs {
		r.Attrs[a.Key] = a.Value.Any()
	}
	rec.Attrs(func(a slog.Attr) bool {
		r.Attrs[a.Key] = a.Value.Any()
		return true
	})
	h.logs.mu.Lock()
	defer h.logs.mu.Unlock()
	h.logs.all = append(h.logs.all, r)
	return nil
}

func (h *logsHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logsHandler{logs: h.logs, attrs: append(slices.Clone(h.attrs), attrs...)}
}

func (h *logsHandler) WithGroup(string) slog.Handler { return h }
