package conformance_test

import "testing"

// The MCP Inspector's command line and web page: what is called there reports its progress, and
// stops when Cancel is pressed.
func TestInspector(t *testing.T) {
	browser := chromium(t)
	url := serveEverything(t)
	walk(t, 4, node(t), "clients/inspector.mjs", "--chromium="+browser, "--url="+url, "--home="+t.TempDir())
}
