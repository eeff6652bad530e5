package main

import (
	"bufio"
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

type greetIn struct {
	Name string `json:"name"`
}

// other is the server upstream. What was stopped there comes out of the channel.
func other(t *testing.T, versions ...string) (url string, stopped chan *cancellation.Error) {
	stopped = make(chan *cancellation.Error, 1)
	s := server.New(&mcp.Implementation{Name: "other", Version: "1.0.0"}, &server.Options{Versions: versions})
	server.MustAddTool(s, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *servercontext.Request, in greetIn) (string, error) {
		if in.Name == "nobody" {
			return "", errors.New("there is nobody to greet")
		}
		return "hello " + in.Name, nil
	})
	server.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
		_ = req.Progress(ctx, 3, 7, "upstream")
		<-ctx.Done()
		var why *cancellation.Error
		assert.ErrorAs(t, context.Cause(ctx), &why)
		stopped <- why
		return "", why
	})
	h := streamable.NewHandler(s, nil)
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		web.Close()
	})
	return web.URL, stopped
}

// A Stop at the client ends the work behind the gateway, whatever the two sides speak.
func TestCancelsGoUpstream(t *testing.T) {
	for name, c := range map[string]struct{ client, upstream string }{
		"handshake to handshake": {server.Version20251125, server.Version20251125},
		"handshake to stateless": {server.Version20251125, server.Version20260728},
		"stateless to handshake": {server.Version20260728, server.Version20251125},
		"stateless to stateless": {server.Version20260728, server.Version20260728},
	} {
		t.Run(name, func(t *testing.T) {
			url, stopped := other(t, c.upstream)
			session := host.Start(t, host.Program(t, "-upstream", url), host.Options{Revision: c.client})
			assert.Equal(t, "hello Ada", session.Text("greet", map[string]any{"name": "Ada"}))
			assert.Equal(t, "there is nobody to greet", session.Failure("greet", map[string]any{"name": "nobody"}))

			call := session.Begin("wait", map[string]any{})
			report := call.Report()
			assert.Equal(t, 3.0, report.Progress)
			assert.Equal(t, 7.0, report.Total)
			assert.Equal(t, "upstream", report.Message)
			call.Stop()
			host.Soon(t, stopped, "the work upstream is stopped")
			assert.Equal(t, "hello again", session.Text("greet", map[string]any{"name": "again"}))
		})
	}
}

// A client that goes away stops what it has started, behind the gateway as well. The official
// client would wait for its calls first, so here it is a pipe.
func TestEndOfTheClientGoesUpstream(t *testing.T) {
	url, stopped := other(t)
	command := host.Program(t, "-upstream", url)
	command.Stderr = t.Output()
	stdin, err := command.StdinPipe()
	require.NoError(t, err)
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	_, err = stdin.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"progressToken":"p",` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"upstream"`)
	require.NoError(t, stdin.Close())
	host.Soon(t, stopped, "the work upstream is stopped")
	require.NoError(t, command.Wait())
}
