package server_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// hotServer has what each hot path needs: 100 tools, 50 templates, a prompt.
func hotServer(tb testing.TB, version string) (*server.Session, *peer) {
	s, ss, p := benchServer(tb, version)
	for i := range 100 {
		server.MustAddTool(s, &mcp.Tool{Name: fmt.Sprint("tool", i)}, func(context.Context, *servercontext.Request, echoIn) (string, error) { return "", nil })
	}
	for i := range 50 {
		server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: fmt.Sprintf("test://%d/{id}", i), Name: fmt.Sprint("t", i)}, readText("found"))
	}
	server.MustAddPrompt(s, &mcp.Prompt{Name: "greet"}, promptText("hello"))
	return ss, p
}

// hotPaths are the requests that servers spend their time with, and what one may allocate
// from the line to the answer. More should be on purpose: the transports add their own.
var hotPaths = []struct {
	name   string
	method string
	params M
	most   float64
}{
	{"ping", "ping", nil, 4},
	{"tools/list of 100", "tools/list", nil, 4},
	{"tools/call", "tools/call", callParams("echo", M{"text": "hello"}), echoAllocs},
	{"tools/call with 1000 reports", "tools/call", callParams("progress", nil, M{"progressToken": 1}), 31},
	{"tools/call with 1000 reports that nobody asked for", "tools/call", callParams("progress", nil), 10},
	{"resources/read through the last of 50 templates", "resources/read", M{"uri": "test://49/a"}, 100},
	{"resources/templates/list of 50", "resources/templates/list", nil, 4},
	{"prompts/get", "prompts/get", M{"name": "greet"}, 12},
}

func TestAllocationsOfHotPaths(t *testing.T) {
	for version, era := range eraNames {
		ss, p := hotServer(t, version)
		for _, c := range hotPaths {
			if c.method == "ping" && version == server.Version20260728 {
				continue // that era has none
			}
			line := []byte(p.Line(1, c.method, c.params))
			r := &benchReply{}
			got := testing.AllocsPerRun(200, func() { ss.Receive(line, r, nil, run) })
			require.Zero(t, r.code, "%s, %s", c.name, era)
			require.LessOrEqual(t, got, c.most+slackAllocs, "%s, %s", c.name, era)
		}
	}
}

// A call that waits on its own goroutine, and its cancel.
func TestAllocationsOfACancel(t *testing.T) {
	_, ss, p := benchServer(t, server.Version20251125)
	call := []byte(p.Line(1, "tools/call", callParams("wait", nil)))
	cancel := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"stop"}}`)
	r := &benchReply{done: make(chan struct{}, 1)}
	got := testing.AllocsPerRun(500, func() {
		ss.Receive(call, r, nil, nil)
		ss.Receive(cancel, nil, nil, nil)
		<-r.done
	})
	require.LessOrEqual(t, got, 10.0+slackAllocs)
}

// BenchmarkHotPaths measures each of them.
func BenchmarkHotPaths(b *testing.B) {
	for _, c := range hotPaths {
		b.Run(c.name, func(b *testing.B) {
			ss, p := hotServer(b, server.Version20251125)
			line := []byte(p.Line(1, c.method, c.params))
			r := &benchReply{}
			b.ReportAllocs()
			for b.Loop() {
				ss.Receive(line, r, nil, run)
			}
			require.Zero(b, r.code)
		})
	}
}
