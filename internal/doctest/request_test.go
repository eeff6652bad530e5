package doctest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	body        = regexp.MustCompile(`(?ms)^(curl .*?) -d '(.*?)'$`)
	echoed      = regexp.MustCompile(`(?m)^ *echo '(\{.*\})'$`)
	header      = regexp.MustCompile(`-H ['"]([\w-]+): ([^'"]*)['"]`)
	placeholder = regexp.MustCompile(`'\$(\w+)'`) // the shell's own part of a body
)

// message is what a printed request says, as far as it can be held against something.
type message struct {
	JSONRPC string
	Method  string
	Params  struct {
		Name, TaskID string
		Arguments    json.RawMessage
		Meta         map[string]any `json:"_meta"`
	}
}

func parseMessage(t *testing.T, where, text string) (m message) {
	t.Helper()
	require.NoErrorf(t, json.Unmarshal([]byte(text), &m), "%s: %s", where, text)
	assert.Equal(t, "2.0", m.JSONRPC, where)
	return m
}

// Requests that are printed, to be typed into a shell, are JSON; their headers say what the body says;
// and the tool that they call is one that a program of the examples has.
func TestEveryPrintedRequestIsWhole(t *testing.T) {
	tools := exampleSources(t)
	curls, echos := 0, 0
	for _, path := range pages(t) {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, block := range shellBlock.FindAllStringSubmatch(string(page), -1) {
			for _, found := range echoed.FindAllStringSubmatch(block[1], -1) {
				echos++
				requireTool(t, path, tools, parseMessage(t, path, found[1]))
			}
			for _, found := range body.FindAllStringSubmatch(placeholder.ReplaceAllString(block[1], "<$$$1>"), -1) {
				curls++
				m := parseMessage(t, path, found[2])
				headers := map[string]string{}
				for _, h := range header.FindAllStringSubmatch(found[1], -1) {
					headers[h[1]] = h[2]
				}
				assert.Equal(t, "application/json", headers["Content-Type"], path)
				assert.Equal(t, m.Method, headers["Mcp-Method"], path)
				assert.Equal(t, m.Params.Meta["io.modelcontextprotocol/protocolVersion"], headers["MCP-Protocol-Version"], path)
				assert.Equal(t, m.Params.Name+strings.Trim(m.Params.TaskID, "<>"), headers["Mcp-Name"], path)
				requireTool(t, path, tools, m)
			}
		}
	}
	require.Greater(t, curls, 2, "next to no request was looked at")
	require.Greater(t, echos, 4, "next to no line was looked at")
}

func requireTool(t *testing.T, where, sources string, m message) {
	t.Helper()
	if m.Method == "tools/call" {
		assert.Contains(t, sources, `Name: "`+m.Params.Name+`"`, "%s: no example has this tool", where)
	}
}

// exampleSources are the programs that a reader can start, in one text.
func exampleSources(t *testing.T) string {
	files, err := filepath.Glob(filepath.Join(root, "examples/*/*.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
