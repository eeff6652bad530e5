package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// inTime does something with slower and slower batches, until it finds what it looks for before they are
// over: that depends on how fast the machine is.
func inTime(t *testing.T, found func(delay time.Duration) bool) {
	t.Helper()
	for delay := 800 * time.Millisecond; !found(delay); delay *= 3 {
		require.Less(t, delay, maxDelay/4, "not found in time")
		t.Logf("batches of %v are too fast for this machine", delay)
	}
}

// toldInTime tells a story until nothing is missing, and returns it. What is proved must be true each time.
func toldInTime(t *testing.T, args []string, missing func(story string) []string) (stdout string) {
	t.Helper()
	inTime(t, func(delay time.Duration) bool {
		var status int
		var stderr string
		status, stdout, stderr = outcome(t, program(t, append(args, "-delay", delay.String())...))
		require.Equal(t, exitOK, status, "%s%s", stdout, stderr)
		require.Empty(t, stderr)
		require.NotContains(t, stdout, "✗")
		lines := missing(stdout)
		if len(lines) > 0 {
			t.Logf("not told: %q\n%s", lines, stdout)
		}
		return len(lines) == 0
	})
	return stdout
}

// lacking are the lines that a text does not have. It may wrap them.
func lacking(text string, lines ...string) []string {
	text = strings.Join(strings.Fields(text), " ")
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(text, line) })
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
		both := append([]string{
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
		}, proved...)
		overStdio := []string{
			"Started “longtool serve -stdio”",
			"notifications/cancelled went out for request",
			"asked to stop by peer, with the reason \"context canceled\"",
			"✓ the notification is what stopped the work 2 calls, over stdio",
		}
		overHTTP := []string{
			"Started “longtool serve -http 127.0.0.1:0”",
			"was closed by the client",
			"the server closed its side",
			"asked to stop by disconnect, with the reason \"the client closed the response\"",
			"✓ the closed response is what stopped the work 2 calls, over HTTP",
			"Stop was pressed 4 times",
		}
		stdout := toldInTime(t, []string{"-db", where, "-postings", "30", "-batch", "5"}, func(story string) []string {
			stdio, http, _ := strings.Cut(story, "The same over HTTP")
			return append(lacking(stdio, append(overStdio, both...)...), lacking(http, append(overHTTP, both...)...)...)
		})
		stdio, http, _ := strings.Cut(stdout, "The same over HTTP")
		require.Len(t, lacking(http, overStdio...), len(overStdio))
		require.Len(t, lacking(stdio, overHTTP...), len(overHTTP))
		require.NotContains(t, stdout, "\x1b")
		require.NotContains(t, stdout, "\r")
		requireAudit(t, openTest(t, where), true)
	})
}

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
	for name, moment := range map[string]string{"stdio": "batch ", "HTTP": "No message means Stop here"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(delay time.Duration) bool {
				command := program(t, "-postings", "100", "-batch", "10", "-delay", delay.String())
				temporary := t.TempDir()
				command.Env = append(command.Env, "TMPDIR="+temporary)
				var errs bytes.Buffer
				command.Stderr = &errs
				stdout, err := command.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, command.Start())
				require.NoError(t, readUntil(stdout, moment))
				_ = command.Process.Signal(os.Interrupt) // a story that is over hears nothing
				_, err = io.Copy(io.Discard, stdout)
				require.NoError(t, err)
				_ = command.Wait()
				left, err := os.ReadDir(temporary)
				require.NoError(t, err)
				require.Empty(t, left)
				if status := command.ProcessState.ExitCode(); status != exitOK {
					require.Equal(t, exitInterrupted, status, errs.String())
					require.Equal(t, "longtool: interrupted\n", errs.String())
					return true
				}
				return false // it was told to its end before
			})
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
