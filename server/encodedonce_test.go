package server_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is the same for every request is made once: encodings of lists, compiled templates, and
// buffers.

// counted is a value that knows how often it was encoded.
type counted struct{ times *atomic.Int64 }

func (c counted) MarshalJSON() ([]byte, error) {
	c.times.Add(1)
	return []byte(`"counted"`), nil
}

func TestListsAreEncodedOncePerRevision(t *testing.T) {
	s := plain(t, nil)
	var tools, prompts, resources, templates atomic.Int64
	meta := func(n *atomic.Int64) mcp.Meta { return mcp.Meta{"com.example/x": counted{n}} }
	server.MustAddTool(s, &mcp.Tool{Name: "a", Meta: meta(&tools)}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil })
	server.MustAddPrompt(s, &mcp.Prompt{Name: "a", Meta: meta(&prompts)}, promptText(""))
	server.MustAddResource(s, &mcp.Resource{URI: "test://a", Name: "a", Meta: meta(&resources)}, readText(""))
	server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: "test://{b}", Name: "b", Meta: meta(&templates)}, readText(""))
	for method, times := range map[string]*atomic.Int64{
		"tools/list": &tools, "prompts/list": &prompts, "resources/list": &resources, "resources/templates/list": &templates,
	} {
		for _, version := range []string{server.Version20251125, server.Version20260728} {
			before := times.Load()
			for range 20 {
				p := newPeer(t, s, peerOptions{Version: version})
				p.Get(method, nil)
				p.Get(method, nil)
			}
			assert.Equal(t, before+1, times.Load(), "%s in %s", method, version)
		}
	}
}

// A read tries every template, and compiling one costs a hundred allocations.
func TestTemplatesAreCompiledAtRegistration(t *testing.T) {
	s := plain(t, nil)
	for i := range 100 {
		server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: fmt.Sprintf("test://%d/{id}/{+rest}{?q,r}", i), Name: "t"}, readText("found"))
	}
	ss := s.Open(t.Context(), server.SessionOptions{Version: server.Version20260728})
	p := &peer{t: t, version: server.Version20260728, caps: M{}}
	line := []byte(p.Line(1, "resources/read", M{"uri": "test://99/a/b/c?q=1"}))
	r := &benchReply{}
	got := testing.AllocsPerRun(100, func() { ss.Receive(line, r, nil, run) })
	require.Zero(t, r.code)
	require.Less(t, got, 2000.0)
}

// A call does not cost a large buffer of its own.
func TestEchoTakesLittleMemory(t *testing.T) {
	for version, era := range eraNames {
		_, ss, p := benchServer(t, version)
		line := []byte(p.Line(1, "tools/call", callParams("echo", M{"text": "hello"})))
		r := &benchReply{}
		const calls = 1000
		var before, after runtime.MemStats
		ss.Receive(line, r, nil, run)
		runtime.ReadMemStats(&before)
		for range calls {
			ss.Receive(line, r, nil, run)
		}
		runtime.ReadMemStats(&after)
		require.Zero(t, r.code)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)/calls, uint64(8<<10), era)
	}
}
