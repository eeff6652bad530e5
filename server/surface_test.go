package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// What the tests of prompts, resources, completion and lists have in common.

// plain is a server without anything registered, whose log is kept.
func plain(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	options := server.Options{}
	if o != nil {
		options = *o
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return server.New(&mcp.Implementation{Name: "surface", Version: "1"}, &options)
}

// eachRevision runs a test for every revision, with a peer that has finished the
// handshake if there is one.
func eachRevision(t *testing.T, s func() *server.Server, test func(t *testing.T, p *peer)) {
	for _, version := range server.Versions() {
		t.Run(version, func(t *testing.T) { test(t, newPeer(t, s(), peerOptions{Version: version})) })
	}
}

// atLeast tells whether the peer's revision is version or a newer one.
func (p *peer) atLeast(version string) bool { return p.version >= version }

var nextRequest int

// Ask sends a request with an id of its own and returns the response.
func (p *peer) Ask(method string, params M) *message {
	p.t.Helper()
	p.mu.Lock()
	nextRequest++
	id := fmt.Sprintf("ask-%d", nextRequest)
	p.mu.Unlock()
	p.Request(id, method, params)
	return p.Answer(id)
}

// Get is Ask for what must be a result.
func (p *peer) Get(method string, params M) M {
	p.t.Helper()
	m := p.Ask(method, params)
	require.Nil(p.t, m.Error, "%s", m.Raw)
	return m.object(p.t, m.Result)
}

// Refused is Ask for what must be an error with that code.
func (p *peer) Refused(code int, method string, params M) *message {
	p.t.Helper()
	m := p.Ask(method, params)
	require.Equal(p.t, code, m.Code(), "%s", m.Raw)
	return m
}

// all lists the items under a name by following cursors, and returns the value of
// a member of each.
func (p *peer) every(method, list, member string) (values []string, pages int) {
	p.t.Helper()
	params := M{}
	for {
		pages++
		require.Less(p.t, pages, 1000, "the list has no end")
		page := p.Get(method, params)
		items, ok := page[list].([]any)
		require.True(p.t, ok, "%s must be an array: %v", list, page)
		for _, item := range items {
			values = append(values, item.(M)[member].(string))
		}
		next, more := page["nextCursor"]
		if !more {
			return values, pages
		}
		params["cursor"] = next
	}
}

// at follows a path of names and positions into decoded JSON.
func at(t testing.TB, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := v.(M)
			require.True(t, ok, "no object at %v of %v", s, path)
			v = m[s]
		case int:
			l, ok := v.([]any)
			require.True(t, ok && s < len(l), "no element %d of %v in %v", s, path, v)
			v = l[s]
		}
	}
	return v
}

func readText(text string) func(context.Context, *servercontext.Request, server.ReadIn) (string, error) {
	return func(context.Context, *servercontext.Request, server.ReadIn) (string, error) { return text, nil }
}

func promptText(text string) func(context.Context, *servercontext.Request, map[string]string) (string, error) {
	return func(context.Context, *servercontext.Request, map[string]string) (string, error) { return text, nil }
}

func noTool(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil }
