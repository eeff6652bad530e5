package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// result is what the command did.
type result struct {
	status         int
	stdout, stderr string
	took           time.Duration
}

// heedcheck runs the command with servers that behave as mode says.
func heedcheck(t *testing.T, mode string, args ...string) result {
	t.Helper()
	t.Setenv(serverMode, mode)
	var stdout, stderr bytes.Buffer
	began := time.Now()
	status := run(t.Context(), args, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String(), time.Since(began)}
}

// command are the arguments after the flags that start a server.
func command(t *testing.T, args ...string) []string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	return append([]string{"--", program}, args...)
}

// patient are limits for loaded machines.
var patient = []string{"-prompt", "20s", "-exit", "30s"}

func TestGoodServerPasses(t *testing.T) {
	r := heedcheck(t, "good", append(append(patient, "-run", "^(answer-suppressed-result|late-cancel|eof-idle|nested-sampling)$"), command(t)...)...)
	require.Equal(t, exitOK, r.status, r.stdout+r.stderr)
	assert.Empty(t, r.stderr)
	assert.Contains(t, r.stdout, "stdio/handshake\n  pass   answer-suppressed-result")
	assert.Contains(t, r.stdout, "stdio/stateless\n")
	assert.Contains(t, r.stdout, "7 passed, 0 failed, 0 skipped, 0 errors")
}

// A tool of anybody's is tried as a task when its calls become some.
func TestTasksOfAnyServer(t *testing.T) {
	args := append(patient, "-era", "stateless", "-run", "^task-")
	r := heedcheck(t, "tasks", append(args, command(t)...)...)
	for ms := 6000; strings.Contains(r.stdout, "cannot be judged here"); ms *= 3 { // the machine needs more than two seconds
		require.Less(t, ms, 60_000, r.stdout)
		r = heedcheck(t, "tasks", append(append(args, "-slow", "2m", "-rule", "5m", "-task", fmt.Sprintf(`sleep {"ms":%d}`, ms)), command(t)...)...)
	}
	require.Equal(t, exitOK, r.status, r.stdout+r.stderr)
	for _, rule := range []string{"task-cancelled", "task-final", "task-cancel-repeated", "task-unknown", "task-notification"} {
		assert.Contains(t, r.stdout, "pass   "+rule)
	}
	assert.Contains(t, r.stdout, "skip   task-cooperative")
	assert.Contains(t, r.stdout, "5 passed, 0 failed, 2 skipped, 0 errors")

	r = heedcheck(t, "good", append(append(patient, "-era", "stateless", "-run", "^task-final$"), command(t)...)...)
	require.Equal(t, exitOK, r.status, r.stdout+r.stderr)
	assert.Contains(t, r.stdout, "the server does not advertise the extension io.modelcontextprotocol/tasks")
}

func TestGoodServerPassesOverHTTP(t *testing.T) {
	args := append(append(patient, "-url", "http://{addr}/", "-run", "^(answer-suppressed-result|late-cancel|shutdown-running|disconnect-cancels)$"), command(t, "{addr}")...)
	r := heedcheck(t, "http", args...)
	require.Equal(t, exitOK, r.status, r.stdout+r.stderr)
	assert.Contains(t, r.stdout, "http/stateless/json\n")
	assert.Contains(t, r.stdout, "10 passed, 0 failed, 0 skipped, 0 errors")
}

func TestServerThatRunsAlready(t *testing.T) {
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := streamable.NewHandler(newServer(), nil)
	var header http.Header
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		h.ServeHTTP(w, r)
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = web.Serve(listener) }()
	defer func() { h.Close(); web.Close(); <-served }()

	r := heedcheck(t, "", append(patient, "-parallel", "1", "-era", "handshake", "-header", "X-Test: yes", "-run", "^(late-cancel|shutdown-grace)$", "http://"+listener.Addr().String())...)
	require.Equal(t, exitOK, r.status, r.stdout+r.stderr)
	assert.Contains(t, r.stdout, "skip   shutdown-grace")
	assert.Contains(t, r.stdout, "cannot be judged from outside")
	assert.Contains(t, r.stdout, "2 passed, 0 failed, 2 skipped, 0 errors")
	assert.Equal(t, "yes", header.Get("X-Test"))
}

// A server may be as bad as it likes: heedcheck says so, in time.
func TestBadServersEndByTheLimit(t *testing.T) {
	for _, c := range []struct{ mode, start, says string }{
		{"hang", "300ms", "initialize is not answered"},
		{"silent", "300ms", "initialize is not answered"},
		{"garbage", "300ms", "initialize is not answered"},
		{"flood", "300ms", "initialize is not answered"},
		{"endless line", "300ms", "initialize is not answered"},
		{"early", "25s", `the server has ended: exit status 3; its last words: "no license found"`},
	} {
		t.Run(c.mode, func(t *testing.T) {
			r := heedcheck(t, c.mode, append([]string{"-start", c.start, "-exit", "2s", "-rule", "30s"}, command(t)...)...)
			assert.Equal(t, exitUsage, r.status, r.stdout)
			assert.Contains(t, r.stdout, c.says)
			assert.Contains(t, r.stdout, "the server could not be tried")
			assert.Less(t, r.took, 3*time.Minute)
		})
	}
}

func TestServerThatDiesIsNamed(t *testing.T) {
	r := heedcheck(t, "dies", append([]string{"-prompt", "20s", "-era", "handshake", "-tool", "wait"}, command(t)...)...)
	assert.Equal(t, exitUsage, r.status, r.stdout)
	assert.Contains(t, r.stdout, `brings the server down; the server has ended: exit status 4; its last words: "out of luck"`)
}

func TestProgramThatDoesNotExist(t *testing.T) {
	r := heedcheck(t, "", "--", filepath.Join(t.TempDir(), "nothing"))
	assert.Equal(t, exitUsage, r.status)
	assert.Contains(t, r.stdout, "the server cannot be reached")
}

func TestURLWithoutServer(t *testing.T) {
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	r := heedcheck(t, "", "-prompt", "1s", "http://"+listener.Addr().String()+"/mcp")
	assert.Equal(t, exitUsage, r.status)
	assert.Contains(t, r.stdout, "refused")
}

// What it sends is not kept without end.
func TestFloodIsNotKept(t *testing.T) {
	r := heedcheck(t, "flood", append([]string{"-start", "60s", "-rule", "90s", "-era", "handshake"}, command(t)...)...)
	assert.Equal(t, exitUsage, r.status, r.stdout)
	assert.Contains(t, r.stdout, "more than anybody can read")
	assert.Less(t, len(r.stdout), 20_000)
}

// The whole process group of a server is killed.
func TestNoProcessIsLeft(t *testing.T) {
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	t.Setenv("HEEDCHECK_TEST_ADDR", listener.Addr().String())
	connected := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				close(connected)
				return
			}
			connected <- c
		}
	}()
	var c net.Conn
	for start := 3 * time.Second; c == nil; start *= 3 { // a busy machine needs time for two processes
		require.Less(t, start, 2*time.Minute, "the child has never come")
		r := heedcheck(t, "orphan", append([]string{"-era", "handshake", "-start", start.String()}, command(t)...)...)
		assert.Equal(t, exitUsage, r.status)
		select {
		case c = <-connected:
		case <-time.After(time.Second):
		}
	}
	defer c.Close()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = c.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "the child is still there")
}

// An interrupt ends it, and what it has started.
func TestInterruptEndsIt(t *testing.T) {
	t.Setenv(serverMode, "hang")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	var out bytes.Buffer
	began := time.Now()
	status := run(ctx, append([]string{"-start", "10m", "-rule", "20m"}, command(t)...), &out, &out)
	assert.Equal(t, exitUsage, status, out.String())
	assert.Less(t, time.Since(began), 5*time.Minute)
}

func TestOutcomeAsJSON(t *testing.T) {
	r := heedcheck(t, "good", append(append(patient, "-json", "-era", "handshake", "-run", "^(late-cancel|id-kind)$"), command(t)...)...)
	require.Equal(t, exitOK, r.status, r.stdout+r.stderr)
	var raw map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &raw))
	assert.Equal(t, map[string]any{"pass": 2.0, "fail": 0.0, "skip": 0.0, "error": 0.0}, raw["counts"])
	verdicts := raw["verdicts"].([]any)
	require.Len(t, verdicts, 2)
	first := verdicts[0].(map[string]any)
	assert.Equal(t, "late-cancel", first["rule"])
	assert.Equal(t, "stdio/handshake", first["setting"])
	assert.Equal(t, "SHOULD", first["level"])
	assert.Equal(t, "pass", first["status"])
}

func TestOutcomeAsJUnit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.xml")
	r := heedcheck(t, "silent", append([]string{"-start", "200ms", "-junit", file}, command(t)...)...)
	assert.Equal(t, exitUsage, r.status)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got junitSuites
	require.NoError(t, xml.Unmarshal(text, &got))
	require.Len(t, got.Suites, 2)
	assert.Equal(t, "stdio/handshake", got.Suites[0].Name)
	assert.Equal(t, 1, got.Suites[0].Errors)
	assert.Contains(t, got.Suites[0].Cases[0].Error.Message, "initialize is not answered")
}

// What fails has its evidence under it, in every form.
func TestFailuresCarryEvidence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.xml")
	// Nothing is prompt enough for this.
	args := append([]string{"-prompt", "20s", "-exit", "1ns", "-era", "handshake", "-run", "^(late-cancel|eof-running)$", "-junit", file}, command(t)...)
	r := heedcheck(t, "good", args...)
	require.Equal(t, exitFailed, r.status, r.stdout)
	assert.Contains(t, r.stdout, "FAIL   eof-running")
	assert.Contains(t, r.stdout, "the server has not ended")
	assert.Contains(t, r.stdout, `→ {"jsonrpc":"2.0","id":1,"method":"tools/call"`)
	assert.Contains(t, r.stdout, "specification: ")
	assert.Contains(t, r.stdout, "1 passed, 1 failed, 0 skipped, 0 errors")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got junitSuites
	require.NoError(t, xml.Unmarshal(text, &got))
	require.Len(t, got.Suites, 1)
	assert.Equal(t, 2, got.Suites[0].Tests)
	assert.Equal(t, 1, got.Suites[0].Failures)
	assert.Contains(t, got.Suites[0].Cases[1].Failure.Text, "tools/call")
}

func TestVerboseShowsTheWire(t *testing.T) {
	r := heedcheck(t, "good", append(append(patient, "-v", "-era", "handshake", "-run", "^late-cancel$"), command(t)...)...)
	require.Equal(t, exitOK, r.status, r.stdout)
	assert.Contains(t, r.stdout, `"method":"initialize"`)
	assert.Contains(t, r.stdout, `"method":"ping"`)
}
