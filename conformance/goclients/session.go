package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// session is what the checks see of a client: the same few verbs for both of them.
type session interface {
	// revision is the one agreed on.
	revision() string
	// tools returns the names of the server's tools.
	tools(ctx context.Context) ([]string, error)
	// call calls a tool. progress gets its reports; nil if nobody wants them.
	call(ctx context.Context, tool string, arguments map[string]any, progress func(float64)) (*result, error)
	// cancelled says how the server must see the end of a call's context, with what
	// reason.
	cancelled() (origin, reason string)
	// stops tells whether the server can hear of the end of a call's context.
	stops() bool
	// told tells whether the client's handlers learn of a question that the server takes
	// back.
	told() bool
	// countsRoots tells whether questions for roots show up in answers.
	countsRoots() bool
	// resumes tells whether the client comes back for the rest of a stream that broke off.
	resumes() bool
	// close ends the session, and the server's process if it is the session's own.
	close() error
	// answers are the client's answers to what the server asks.
	answers() *answers
	// connections are nil over stdio.
	connections() *connections
	// errors are what the client has complained about.
	errors() *complaints
}

// common is the part of a session that does not depend on the client.
type common struct {
	target   *target
	asks     answers
	http     *connections
	complain complaints
}

func (c *common) answers() *answers         { return &c.asks }
func (c *common) connections() *connections { return c.http }
func (c *common) errors() *complaints       { return &c.complain }

// result is what a tool returns.
type result struct {
	text       string // of the first text block
	isError    bool
	structured json.RawMessage // nil without any
}

// answers counts what the server asks, by kind, and answers it.
type answers struct {
	mu     sync.Mutex
	counts map[string]int                         // guarded by mu
	once   map[string]func(context.Context) error // guarded by mu; taken out by next
}

// replace has f called instead of the usual answer to the next question of a kind.
func (a *answers) replace(kind string, f func(context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.once == nil {
		a.once = map[string]func(context.Context) error{}
	}
	a.once[kind] = f
}

// asked says how many questions of a kind there were.
func (a *answers) asked(kind string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[kind]
}

// next is called by the client's handlers. An error of its own is their answer.
func (a *answers) next(ctx context.Context, kind string) error {
	a.mu.Lock()
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	a.counts[kind]++
	f := a.once[kind]
	delete(a.once, kind)
	a.mu.Unlock()
	if f != nil {
		return f(ctx)
	}
	return nil
}

// complaints is a slog handler that keeps warnings and errors.
type complaints struct {
	ignored string // complaints with this text do not count; "" if all do; set before use

	mu   sync.Mutex
	list []string // guarded by mu; written by Handle and forgive
}

func (c *complaints) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}
func (c *complaints) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c *complaints) WithGroup(string) slog.Handler      { return c }

func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s", a)
		return true
	})
	if c.ignored != "" && strings.Contains(line, c.ignored) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, line)
	return nil
}

func (c *complaints) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// forgive takes back what a check has provoked itself.
func (c *complaints) forgive(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = slices.DeleteFunc(c.list, func(line string) bool { return strings.Contains(line, text) })
}
