package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outcome runs the program as a user does, its server included.
func outcome(t *testing.T, command *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return command.ProcessState.ExitCode(), out.String(), errs.String()
}

var proved = []string{
	"✓ every posting was closed once",
	"✓ every applicant was notified once",
	"✓ the ledger equals the rows",
	"✓ nothing on the wire after the cancel",
	"✓ the server's reports equal the database",
	"✓ a further call with the same id changed nothing",
}

func TestStory(t *testing.T) {
	databases := []string{filepath.Join(t.TempDir(), "board.db")}
	if where := os.Getenv(postgresURL); where != "" {
		databases = append(databases, where)
	}
	for _, where := range databases {
		// Twice on the same database: the second telling starts anew.
		for range 2 {
			status, stdout, stderr := outcome(t, program(t, "-db", where, "-postings", "60", "-batch", "5", "-delay", "400ms"))
			require.Equal(t, exitOK, status, "%s%s", stdout, stderr)
			require.Empty(t, stderr)
			for _, line := range append([]string{
				"60 stale postings and 15 fresh ones",
				"■ Stop, while batch 5 is being written",
				"■ Stop, while batch 7 is being committed",
				"notifications/cancelled went out for request",
				"not one message of that request came after it was read",
				"asked to stop by peer",
				"20 of 60 stale postings are closed",
				"35 of 60 stale postings are closed",
				"interrupted and rolled back",
				"its commit was shielded, and it is whole",
				"completed: 12 batches, 60 postings closed",
				"Stop was pressed 2 times",
			}, proved...) {
				assert.Contains(t, unwrapped(stdout), line)
			}
			require.NotContains(t, stdout, "✗")
			require.NotContains(t, stdout, "\x1b")
			require.NotContains(t, stdout, "\r")

			db := openTest(t, where)
			requireAudit(t, db, true)
		}
	}
}

// unwrapped puts wrapped lines together again.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestStoryOnATemporaryFile(t *testing.T) {
	command := program(t, "-quiet", "-postings", "12", "-batch", "3", "-delay", "0s")
	temporary := t.TempDir()
	command.Env = append(command.Env, "TMPDIR="+temporary, "TMP="+temporary, "TEMP="+temporary)
	status, stdout, stderr := outcome(t, command)
	require.Equal(t, exitOK, status, "%s%s", stdout, stderr)
	require.Empty(t, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for i, line := range lines {
		assert.True(t, strings.HasPrefix(strings.TrimSpace(line), "✓ "), "line %d: %q", i, line)
	}
	require.GreaterOrEqual(t, len(lines), 5)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left, "the database is removed")
}

// Boards of all shapes, whatever moment Stop comes at.
func TestStoryOfAnySize(t *testing.T) {
	for _, flags := range []string{
		"-postings 1 -batch 1 -delay 0s",
		"-postings 1 -batch 1000 -delay 200ms",
		"-postings 7 -batch 3 -delay 20ms",
		"-postings 100 -batch 1 -delay 1ms",
	} {
		status, stdout, stderr := outcome(t, program(t, strings.Fields(flags)...))
		require.Equal(t, exitOK, status, "%s: %s%s", flags, stdout, stderr)
		require.Empty(t, stderr)
	}
}

// Ctrl-C ends the story, its server, and its temporary files.
func TestInterruptedStory(t *testing.T) {
	command := program(t, "-postings", "1000", "-batch", "10", "-delay", "1s")
	temporary := t.TempDir()
	command.Env = append(command.Env, "TMPDIR="+temporary)
	var errs bytes.Buffer
	command.Stderr = &errs
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	// The first line of the bar: the server is at work.
	require.NoError(t, readUntil(stdout, "batch "))
	start := time.Now()
	require.NoError(t, command.Process.Signal(os.Interrupt))
	go readUntil(stdout, "\x00")
	_ = command.Wait()
	require.Equal(t, exitInterrupted, command.ProcessState.ExitCode(), errs.String())
	require.Less(t, time.Since(start), 10*time.Second)
	require.Equal(t, "longtool: interrupted\n", errs.String())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

func readUntil(r interface{ Read([]byte) (int, error) }, text string) error {
	var seen []byte
	chunk := make([]byte, 1024)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := r.Read(chunk)
		seen = append(seen, chunk[:n]...)
		if err != nil {
			return err
		}
	}
	return nil
}

// A story whose database is damaged on the way says so and ends with status 1.
func TestBrokenInvariantIsReported(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "board.db"))
	fillTest(t, db, 10)
	_, err := testJob(db, 5).run(t.Context())
	require.NoError(t, err)
	tap := newTap(nil)
	hear(t, tap, true, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":"call-1"}}}`)
	hear(t, tap, true, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	hear(t, tap, true, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{}}`)
	hear(t, tap, false, `{"jsonrpc":"2.0","id":6,"result":{}}`)
	hear(t, tap, false, `{"jsonrpc":"2.0","id":5,"result":{}}`)
	for _, damage := range []struct{ sql, line string }{
		{`update postings set closings = 2 where id = 1`, "✗ every posting was closed once"},
		{`delete from notifications where applicant_id = 1`, "✗ every applicant was notified once"},
		{`delete from ledger`, "✗ the ledger equals the rows"},
	} {
		_, err = db.ExecContext(t.Context(), damage.sql)
		require.NoError(t, err)
		var out strings.Builder
		story := &story{screen: newScreen(&out, true), db: db, link: &link{tap: tap}, stops: []string{"call-1"}}
		status, err := story.prove(t.Context())
		require.NoError(t, err)
		require.Equal(t, exitBroken, status)
		require.Contains(t, out.String(), damage.line)
		require.Contains(t, out.String(), "✗ nothing on the wire after the cancel")
	}
}

// The server serves a client that never heard of the story, and a board that
// nobody filled.
func TestServe(t *testing.T) {
	where := filepath.Join(t.TempDir(), "board.db")
	t.Setenv(asProgram, "1") // for the server that overStdio starts
	link, err := overStdio(t.Context(), where)
	require.NoError(t, err)
	defer func() { require.NoError(t, link.close()) }()
	call := func(tool string, arguments map[string]any, into any) error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return link.call(ctx, toolCall(tool, arguments), into)
	}

	var status Status
	require.NoError(t, call(closeTool, map[string]any{"operation_id": "op"}, &status))
	require.Equal(t, stateCompleted, status.State)
	require.Equal(t, 400, status.Closed)

	var report Report
	require.NoError(t, call(statusTool, map[string]any{"operation_id": "op"}, &report))
	require.Equal(t, Report{Status: status, Stops: []Stop{}}, report)

	require.NoError(t, call(statusTool, map[string]any{"operation_id": "other"}, &report))
	require.Equal(t, Report{Status: Status{OperationID: "other", State: stateUnknown}, Stops: []Stop{}}, report)

	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{statusTool, map[string]any{"operation_id": "op", "wait": "long"}, "wait: want a duration"},
		{closeTool, map[string]any{"operation_id": "op", "delay": "long"}, "delay: want a duration"},
		{closeTool, map[string]any{"operation_id": "op", "stale_days": 7}, errMismatch.Error()},
		{closeTool, map[string]any{"operation_id": ""}, "operation_id"},
		{closeTool, map[string]any{"operation_id": "op", "batch": 0}, "batch"},
		{closeTool, map[string]any{}, "operation_id"},
	} {
		require.ErrorContains(t, call(c.tool, c.arguments, &report), c.want)
	}
	require.Empty(t, link.logged())
}

// A server that is killed in the middle of a batch leaves a whole database, and
// a retry to a new one goes on as soon as the lease of the dead one has run out.
func TestServerDies(t *testing.T) {
	where := filepath.Join(t.TempDir(), "board.db")
	db := openTest(t, where)
	fillTest(t, db, 60)
	start := func() (*exec.Cmd, *link) {
		command := program(t, "serve", "-stdio", "-db", where)
		l, err := connect(t.Context(), "stdio", &mcp.CommandTransport{Command: command}, func() string { return "" })
		require.NoError(t, err)
		return command, l
	}
	params := toolCall(closeTool, map[string]any{"operation_id": "op", "batch": 10, "delay": "300ms"})
	params.SetProgressToken("call-1")

	command, l := start()
	failed := make(chan error)
	var status Status
	go func() { failed <- l.call(t.Context(), params, &status) }()
	for p := range l.progress {
		if p.phase == phaseCommitting && p.done > 20 {
			break
		}
	}
	require.NoError(t, command.Process.Kill())
	require.Error(t, <-failed)
	_ = l.close()
	requireAudit(t, db, false)
	before, err := db.status(t.Context(), "op")
	require.NoError(t, err)
	require.Equal(t, 2, before.Batches)

	_, l = start()
	defer func() { require.NoError(t, l.close()) }()
	require.NoError(t, l.call(t.Context(), params, &status))
	require.Equal(t, stateCompleted, status.State)
	require.Equal(t, 2, status.Runs)
	requireAudit(t, db, true)
}
