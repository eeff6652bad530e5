package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// The story is told twice on the same database: the second telling starts anew.
func TestStory(t *testing.T) {
	onEachPlace(t, func(t *testing.T, where string) {
		status, stdout, stderr := outcome(t, program(t, "-db", where, "-postings", "30", "-batch", "5", "-delay", "800ms"))
		require.Equal(t, exitOK, status, "%s%s", stdout, stderr)
		require.Empty(t, stderr)
		stdio, http, found := strings.Cut(stdout, "The same over HTTP")
		require.True(t, found)
		stdio, http = unwrapped(stdio), unwrapped(http)
		for _, line := range append([]string{
			"30 stale postings and 7 fresh ones",
			"client (MCP 2026-07-28)",
			"■ Stop, while batch 3 is being written",
			"■ Stop, while batch 4 is being committed",
			"not one message of that request came after",
			"10 of 30 stale postings are closed",
			"20 of 30 stale postings are closed",
			"interrupted and rolled back",
			"its commit was shielded, and it is whole",
			"completed: 6 batches, 30 postings closed",
		}, proved...) {
			assert.Contains(t, stdio, line)
			assert.Contains(t, http, line)
		}
		for _, line := range []string{
			"Started “longtool serve -stdio”",
			"notifications/cancelled went out for request",
			"asked to stop by peer, with the reason \"context canceled\"",
			"✓ the notification is what stopped the work 2 calls, over stdio",
		} {
			assert.Contains(t, stdio, line)
			assert.NotContains(t, http, line)
		}
		for _, line := range []string{
			"Started “longtool serve -http 127.0.0.1:0”",
			"was closed by the client",
			"the server closed its side",
			"asked to stop by disconnect, with the reason \"the client closed the response\"",
			"✓ the closed response is what stopped the work 2 calls, over HTTP",
			"Stop was pressed 4 times",
		} {
			assert.Contains(t, http, line)
			assert.NotContains(t, stdio, line)
		}
		require.NotContains(t, stdout, "✗")
		require.NotContains(t, stdout, "\x1b")
		require.NotContains(t, stdout, "\r")
		requireAudit(t, openTest(t, where), true)
	})
}

// unwrapped puts wrapped lines together again.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestStoryOnATemporaryFile(t *testing.T) {
	t.Parallel()
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
	for _, over := range []string{"stdio", "HTTP"} {
		n := 0
		for _, line := range lines {
			if strings.HasSuffix(line, ", over "+over) {
				n++
			}
		}
		require.GreaterOrEqual(t, n, len(proved)-1, "over %s: %s", over, stdout) // Stop may have come too late
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left, "the database is removed")
}

// Boards of all shapes, whatever moment Stop comes at.
func TestStoryOfAnySize(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{
		"-postings 1 -batch 1 -delay 0s",
		"-postings 1 -batch 1000 -delay 200ms",
		"-postings 7 -batch 3 -delay 20ms",
		"-postings 30 -batch 1 -delay 1ms",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := outcome(t, program(t, strings.Fields(flags)...))
			require.Equal(t, exitOK, status, "%s: %s%s", flags, stdout, stderr)
			require.Empty(t, stderr)
		})
	}
}

// Ctrl-C ends the story, its server, and its temporary files, wherever it comes.
func TestInterruptedStory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ delay, moment string }{
		"stdio": {"1s", "batch "},
		"HTTP":  {"100ms", "No message means Stop here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := program(t, "-postings", "100", "-batch", "10", "-delay", c.delay)
			temporary := t.TempDir()
			command.Env = append(command.Env, "TMPDIR="+temporary)
			var errs bytes.Buffer
			command.Stderr = &errs
			stdout, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			require.NoError(t, readUntil(stdout, c.moment))
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
		})
	}
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
	t.Parallel()
	db := openTest(t, filepath.Join(t.TempDir(), "board.db"))
	fillTest(t, db, 10)
	_, err := testJob(db, 5).run(t.Context())
	require.NoError(t, err)
	tap := newTap(methodCancelled)
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
		story := &story{
			screen: newScreen(&out, true), db: db, reach: &overStdio, link: &link{tap: tap}, stops: []stopped{{token: "call-1"}},
		}
		status, err := story.prove(t.Context())
		require.NoError(t, err)
		require.Equal(t, exitBroken, status)
		require.Contains(t, out.String(), damage.line)
		require.Contains(t, out.String(), "✗ nothing on the wire after the cancel")
	}
}
