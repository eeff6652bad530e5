package conformance_test

import (
	"net/http/httptest"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/heedmcp/heed/transport/transporttest/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The MCP Inspector's command line and web page: what is called there reports its progress, and
// stops when Cancel is pressed. In the stateless era that is tried with a server that makes a task of
// the call, and with one that has no tasks.
func TestInspector(t *testing.T) {
	browser := chromium(t)
	url := serveEverything(t)
	without := server.New(&mcp.Implementation{Name: "without-tasks", Version: "1.0.0"}, nil)
	fixture.Register(without)
	web := httptest.NewServer(streamable.NewHandler(without, nil))
	defer web.Close()
	walk(t, 11, node(t), "clients/inspector.mjs", "--chromium="+browser, "--url="+url, "--without-tasks="+web.URL, "--home="+t.TempDir())
}
