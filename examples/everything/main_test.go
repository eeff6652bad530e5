package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The program under test is this test binary, started again with this set.
const asProgram = "EVERYTHING_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// program is a command that runs everything with these arguments.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, args...)
	command.Env = append(os.Environ(), asProgram+"=1")
	return command
}

// The program serves until its stdin ends, cancels what then still waits, and
// writes nothing but messages.
func TestServesStdio(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	command := program(t, "stdio")
	command.Stdin = strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `,"name":"cancel_wait","arguments":{"tag":"a"}}}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	require.NoError(t, command.Run(), "%s", &stderr)
	assert.Regexp(t, `\A\{"jsonrpc":"2.0","id":2,"result":\{[^\n]+\}\n\z`, stdout.String())
	assert.Contains(t, stdout.String(), `"protocolVersion":"2025-11-25"`)
	assert.Empty(t, stderr.String())
}

// Wrong use is one line on stderr, nothing on stdout, and status 2.
func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{},
		{""},
		{"bogus"},
		{"line\nbreak"},
		{"-x"},
		{"stdio", "-x"},
		{"stdio", "-addr", "127.0.0.1:0"},
		{"stdio", "more"},
		{"http", "-x"},
		{"http", "-addr"},
		{"http", "-addr", ""},
		{"http", "-addr", "localhost"},
		{"http", "-addr", "localhost:http"},
		{"http", "-addr", "localhost:65536"},
		{"http", "-addr", "127.0.0.1:0", "more"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), args, &stdout, &stderr)
			assert.Equal(t, exitUsage, status)
			assert.Empty(t, stdout.String())
			assert.Regexp(t, `\Aeverything: [^\n]+\n\z`, stderr.String())
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"help"}, {"stdio", "-h"}, {"http", "-h"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitOK, run(t.Context(), args, &stdout, &stderr), "%q", args)
		assert.Equal(t, usage, stdout.String())
		assert.Empty(t, stderr.String())
	}
}

func TestAddressThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitBroken, run(t.Context(), []string{"http", "-addr", taken.Addr().String()}, &stdout, &stderr))
	assert.Empty(t, stdout.String())
	assert.Regexp(t, `\Aeverything: [^\n]+\n\z`, stderr.String())
}

// Over HTTP both eras are served at one path, until the end of ctx.
func TestServesHTTP(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	said, stderr := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"http", "-addr", "127.0.0.1:0"}, io.Discard, stderr)
		stderr.Close()
	}()
	lines := bufio.NewReader(said)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "everything: listening on ")
	require.True(t, ok, first)

	post := func(body string, header map[string]string) (int, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range header {
			request.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(answer)
	}
	code, answer := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, answer, `"protocolVersion":"2025-11-25"`)
	code, answer = post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"})
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, answer, `"hello"`)

	http.DefaultClient.CloseIdleConnections()
	stop()
	assert.Equal(t, exitOK, <-status)
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	assert.Empty(t, rest)
}
