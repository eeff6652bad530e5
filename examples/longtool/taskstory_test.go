package main

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/tasks"
	"github.com/stretchr/testify/require"
)

func TestTaskStory(t *testing.T) {
	onEachPlace(t, func(t *testing.T, where string) {
		lines := []string{
			"The answer came at once: task ",
			"■ tasks/cancel, at",
			`cancelled: "cancelled by peer: \"tasks/cancel\""`,
			`asked to stop by peer, with the reason "tasks/cancel"`,
			"Resumed with the same operation id",
			"■ The server is killed, at",
			`the handler was called again, with the same arguments. The task is working, "resumed (run 2)"`,
			"completed: 8 batches, 40 postings closed",
			"in 3 runs.",
			"✓ every posting was closed once 40 closed",
			"✓ every applicant was notified once",
			"✓ the ledger equals the rows 8 batches",
			"✓ tasks/cancel is what stopped the work",
			"✓ cancelled was only said when the work had stopped",
			"✓ the task's result equals the database",
			"✓ what was committed before the kill was kept",
			"✓ a task that has ended does not change any more",
			"✓ a late tasks/cancel changed nothing",
			"✓ the store says how often the task was begun 2 times",
		}
		toldInTime(t, []string{"task", "-db", where, "-postings", "40", "-batch", "5"}, func(story string) []string {
			return lacking(story, lines...)
		})
		requireAudit(t, openTest(t, where), true)
	})
}

// Boards of all shapes, whatever moment the cancel and the kill come at.
func TestTaskStoryOfAnySize(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{
		"-postings 1 -batch 1 -delay 0s",
		"-postings 1 -batch 1000 -delay 300ms",
		"-postings 30 -batch 1 -delay 20ms",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			command := program(t, append([]string{"task"}, strings.Fields(flags)...)...)
			temporary := t.TempDir()
			command.Env = append(command.Env, "TMPDIR="+temporary)
			status, stdout, stderr := outcome(t, command)
			require.Equal(t, exitOK, status, "%s: %s%s", flags, stdout, stderr)
			require.Empty(t, stderr)
			require.NotContains(t, stdout, "✗")
			left, err := os.ReadDir(temporary)
			require.NoError(t, err)
			require.Empty(t, left, "the databases are removed")
		})
	}
}

// Each ten postings take a second. A job that is stopped in the middle has many more than a
// busy machine needs for that.
const (
	taskPostings = 200
	longPostings = 600
)

// taskTest is a board, and servers on it.
type taskTest struct {
	*testing.T
	db    *database
	where string
	ctx   context.Context
}

// onTaskBoards runs a test on every kind of database.
func onTaskBoards(t *testing.T, postings int, test func(t *taskTest)) {
	onEachPlace(t, func(t *testing.T, where string) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*surely)
		defer cancel()
		db := openTest(t, where)
		fillTest(t, db, postings)
		test(&taskTest{t, db, where, ctx})
	})
}

func (t *taskTest) start() (*process, *taskClient) {
	t.Helper()
	p, endpoint, err := startServer(t.ctx, t.where)
	require.NoError(t, err)
	return p, t.client(endpoint)
}

func (t *taskTest) client(endpoint *url.URL) *taskClient {
	c := newTaskClient(endpoint.String())
	t.Cleanup(c.leave)
	return c
}

// begin starts the job, and returns when it has closed a batch.
func (t *taskTest) begin(c *taskClient) string { return t.beginWith(c, time.Second) }

func (t *taskTest) beginWith(c *taskClient, delay time.Duration) string {
	t.Helper()
	v, err := c.begin(t.ctx, closeTool, map[string]any{"operation_id": "op", "batch": 10, "delay": delay.String()})
	require.NoError(t, err)
	_, err = c.until(t.ctx, v.TaskID, func(v *taskView) bool { return v.done() >= 10 })
	require.NoError(t, err)
	return v.TaskID
}

func (t *taskTest) end(c *taskClient, id string) *taskView {
	t.Helper()
	v, err := c.until(t.ctx, id, ended)
	require.NoError(t, err)
	return v
}

// A server that is told to end hands its tasks over: the next one goes on at once.
func TestTaskIsHandedOver(t *testing.T) {
	onTaskBoards(t, taskPostings, func(t *taskTest) {
		var id string
		var status *Status
		inTime(t.T, func(delay time.Duration) bool {
			fillTest(t.T, t.db, taskPostings)
			p, c := t.start()
			id = t.beginWith(c, delay)
			require.NoError(t, p.stop(), p.log.String())
			requireAudit(t, t.db, false)
			var err error
			status, err = t.db.status(t.ctx, "op")
			require.NoError(t, err)
			return status.State != stateCompleted
		})
		require.Equal(t, stateStopped, status.State)

		p, c := t.start()
		v := t.end(c, id)
		require.Equal(t, tasks.Completed, v.Status, v.StatusMessage)
		require.NoError(t, structured(v.Result, status))
		require.Equal(t, taskPostings, status.Closed)
		require.Equal(t, 2, status.Runs)
		requireAudit(t, t.db, true)
		require.NoError(t, p.stop())
	})
}

// A task can be cancelled at a server that does not run it.
func TestTaskIsCancelledAtAnotherServer(t *testing.T) {
	onTaskBoards(t, longPostings, func(t *taskTest) {
		p, c := t.start()
		other, c2 := t.start()
		id := t.begin(c)
		require.NoError(t, c2.cancel(t.ctx, id))
		v := t.end(c2, id)
		require.Equal(t, tasks.Cancelled, v.Status, v.StatusMessage)
		status, err := t.db.status(t.ctx, "op")
		require.NoError(t, err)
		require.Equal(t, stateStopped, status.State)
		require.Less(t, status.Closed, longPostings)
		requireAudit(t, t.db, false)
		require.NoError(t, p.stop())
		require.NoError(t, other.stop())
	})
}

// A cancel that comes while nobody runs the task counts when somebody does.
func TestTaskIsCancelledWhileItsServerIsDead(t *testing.T) {
	onTaskBoards(t, longPostings, func(t *taskTest) {
		p, c := t.start()
		id := t.begin(c)
		require.NoError(t, p.kill())
		p, c = t.start()
		require.NoError(t, c.cancel(t.ctx, id))
		v := t.end(c, id)
		require.Equal(t, tasks.Cancelled, v.Status, v.StatusMessage)
		status, err := t.db.status(t.ctx, "op")
		require.NoError(t, err)
		require.Less(t, status.Closed, longPostings)
		requireAudit(t, t.db, false)
		require.NoError(t, p.stop())
	})
}

// A server on stdio that loses its client hands its tasks over as well.
func TestTaskOutlivesStdio(t *testing.T) {
	onTaskBoards(t, taskPostings, func(t *taskTest) {
		command := program(t.T, "serve", "-stdio", "-db", t.where)
		in, err := command.StdinPipe()
		require.NoError(t, err)
		out, err := command.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, command.Start())
		_, err = in.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"` + tasks.ID + `":{}}}},` +
			`"name":"` + closeTool + `","arguments":{"operation_id":"op","batch":10,"delay":"1s"}}}` + "\n"))
		require.NoError(t, err)
		require.NoError(t, readUntil(out, `"resultType":"task"`))
		awaitState(t.T, t.db, "op", stateRunning)
		require.NoError(t, in.Close())
		go readUntil(out, "\x00")
		require.NoError(t, command.Wait())
		requireAudit(t, t.db, false)

		p, _ := t.start()
		awaitState(t.T, t.db, "op", stateCompleted)
		requireAudit(t, t.db, true)
		require.NoError(t, p.stop())
	})
}
