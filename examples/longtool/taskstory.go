package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/tasks"
)

// takeoverWithin bounds how long the next server may take to go on with a task of one
// that has died: both the task's lease and the operation's must run out.
const takeoverWithin = time.Minute

// A taskStory is the story of a job that outlives the client that has started it, and
// the server that runs it. It uses nothing but the task's id, and
// reads the database at the bottom.
type taskStory struct {
	*story
	where   string
	server  *process
	client  *taskClient
	store   tasks.Store // read only, to see what a server would find
	shown   string      // the last progress that was drawn
	clients int
	runs    int // of the second task, as far as is known: 1, or 2 once its server was killed in the middle
}

// tellTask tells the story of a task and returns the exit status.
func tellTask(ctx context.Context, o *options, s *screen) (int, error) {
	started := time.Now()
	db, where, closeDB, err := openBoard(ctx, o.db)
	if err != nil {
		return exitUsage, err
	}
	defer closeDB()
	store, closer, err := openTaskStore(ctx, where, db)
	if err != nil {
		return exitUsage, err
	}
	defer closer.Close()
	t := &taskStory{story: newStory(o, s, db, &overHTTP), where: where, store: store}
	if err := t.fill(ctx); err != nil {
		return exitUsage, err
	}
	status, err := t.tell(ctx)
	if err == nil {
		s.heading(fmt.Sprintf("A cancel, a retry and a dead server in %s: nothing was lost, and nothing was done twice.",
			time.Since(started).Round(100*time.Millisecond)))
	}
	return status, err
}

func (t *taskStory) tell(ctx context.Context) (status int, err error) {
	if err := t.start(ctx); err != nil {
		return exitBroken, err
	}
	defer func() {
		t.client.leave()
		if stopErr := t.server.stop(); err == nil && stopErr != nil {
			status, err = exitBroken, fmt.Errorf("the server did not end well: %w", stopErr)
		}
	}()
	first, err := t.begin(ctx)
	if err == nil {
		err = t.stop(ctx, first)
	}
	if err != nil {
		return exitBroken, err
	}
	second, err := t.resume(ctx)
	if err == nil {
		err = t.outlive(ctx, second)
	}
	if err == nil {
		err = t.lookBack(ctx, first, second)
	}
	if err != nil {
		return exitBroken, err
	}
	t.screen.heading("Proof")
	findings, err := t.db.audit(ctx, true)
	if err != nil {
		return exitBroken, err
	}
	return t.verdicts(append(findings, summarized(t.checks)...)), nil
}

// start starts a server, and a client that has never seen another.
func (t *taskStory) start(ctx context.Context) error {
	p, endpoint, err := startServer(ctx, t.where)
	if err != nil {
		return err
	}
	t.server = p
	t.client = newTaskClient(endpoint.String())
	t.clients++
	return nil
}

// another is one more client, which knows nothing but the task's id. The one before is gone.
func (t *taskStory) another() {
	t.client.leave()
	t.client = newTaskClient(t.client.endpoint)
	t.clients++
}

func (t *taskStory) call(ctx context.Context) (string, error) {
	v, err := t.client.begin(ctx, closeTool, map[string]any{
		"operation_id": t.operation, "batch": t.options.batch, "delay": t.delay.String(),
	})
	return v.TaskID, err
}

func (t *taskStory) begin(ctx context.Context) (string, error) {
	t.screen.heading("A call that becomes a task")
	id, err := t.call(ctx)
	if err != nil {
		return "", err
	}
	t.screen.say("Called %s, operation %s, over HTTP. The answer came at once: task %s… The client that called "+
		"has left, and its connections are closed.", closeTool, t.operation, id[:6])
	t.another()
	return id, t.breathe(ctx)
}

// watch draws a task's progress until it has ended, or reached what is asked for.
func (t *taskStory) watch(ctx context.Context, id string, enough func(*taskView) bool) (*taskView, error) {
	return t.client.until(ctx, id, func(v *taskView) bool {
		if v.StatusMessage != t.shown {
			t.shown = v.StatusMessage
			if v.done() > 0 {
				t.screen.bar(v.done(), float64(t.board.stale), v.StatusMessage)
			}
		}
		return v.Status.Ended() || enough(v)
	})
}

func ended(v *taskView) bool { return v.Status.Ended() }

// stop cancels the task from a client that has not started it.
func (t *taskStory) stop(ctx context.Context, id string) error {
	t.screen.heading("Another client looks, and cancels")
	v, err := t.watch(ctx, id, func(v *taskView) bool { return v.done() >= float64(t.firstStop()*t.options.batch) })
	if err != nil {
		return err
	}
	if v.Status.Ended() {
		return t.tooShort(v)
	}
	if err := t.client.cancel(ctx, id); err != nil {
		return err
	}
	t.screen.stopped(fmt.Sprintf("tasks/cancel, at %q", v.StatusMessage))
	after, err := t.client.get(ctx, id)
	if err != nil {
		return err
	}
	if v, err = t.watch(ctx, id, ended); err != nil {
		return err
	}
	if v.Status != tasks.Cancelled {
		return t.tooShort(v)
	}
	rows, err := t.db.rowsOf(ctx, t.operation)
	if err != nil {
		return err
	}
	entries, err := t.db.entries(ctx, t.operation)
	if err != nil {
		return err
	}
	stop, err := t.recorded(ctx, id)
	if err != nil {
		return err
	}
	facts := []string{fmt.Sprintf("%s: %q", v.Status, v.StatusMessage)}
	if !after.Status.Ended() {
		facts = append([]string{fmt.Sprintf("right after the acknowledgement: %s, %q", after.Status, after.StatusMessage)}, facts...)
	}
	t.screen.layers([]layer{
		{"caller", []string{"gone: the task is all there is to ask"}}, {"task", facts},
		serverLayer(stop), rows.layer(t.board), ledgerLayer(entries, stop),
	})
	t.check("tasks/cancel is what stopped the work", stop != nil && stop.Origin == cancellation.Peer.String(), "1 task")
	running, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	t.check("cancelled was only said when the work had stopped", running.State != stateRunning, running.State)
	if err := t.auditBetween(ctx); err != nil {
		return err
	}
	return t.breathe(ctx)
}

func (t *taskStory) tooShort(v *taskView) error {
	if v.Status == tasks.Failed {
		return fmt.Errorf("the task has failed: %s", v.Error)
	}
	t.screen.say("The job was through before it could be stopped: give it more -postings, or more -delay.")
	return nil
}

// recordWithin bounds how long the record of a task's stop may take. There is one: the task had worked.
const recordWithin = time.Minute

// recorded is the server's own record of a task's stop, nil if it does not come.
func (t *taskStory) recorded(ctx context.Context, id string) (*Stop, error) {
	for start := time.Now(); ; {
		var answer json.RawMessage
		params := map[string]any{"name": statusTool, "arguments": map[string]any{"operation_id": t.operation}}
		if err := t.client.request(ctx, methodCall, statusTool, params, &answer); err != nil {
			return nil, err
		}
		var report Report
		if err := structured(answer, &report); err != nil {
			return nil, err
		}
		for i := range report.Stops {
			if strings.Contains(report.Stops[i].RequestID, id) {
				return &report.Stops[i], nil
			}
		}
		if time.Since(start) > recordWithin {
			return nil, nil
		}
		if err := pause(ctx, leasePoll); err != nil {
			return nil, err
		}
	}
}

// resume goes on with the operation in a new task: one that has ended never changes.
func (t *taskStory) resume(ctx context.Context) (string, error) {
	t.screen.heading("Resumed with the same operation id, as a new task")
	before, err := t.db.status(ctx, t.operation)
	if err != nil {
		return "", err
	}
	id, err := t.call(ctx)
	if err != nil {
		return "", err
	}
	t.screen.say("Task %s… goes on behind batch %d.", id[:6], before.Batches)
	t.another()
	return id, nil
}

// outlive kills the server in the middle of the work, and finds the task again in
// another one.
func (t *taskStory) outlive(ctx context.Context, id string) error {
	v, err := t.watch(ctx, id, func(v *taskView) bool { return v.done() >= float64(t.secondStop()*t.options.batch) })
	if err != nil {
		return err
	}
	t.client.leave()
	if err := t.server.kill(); err != nil {
		return err
	}
	killed := time.Now()
	if t.runs = 2; v.Status.Ended() {
		t.runs = 1
	}
	t.screen.stopped(fmt.Sprintf("The server is killed, at %q", v.StatusMessage))
	if err := t.auditBetween(ctx); err != nil {
		return err
	}
	before, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	t.screen.say("In the ledger: %s. What had been begun after that is gone.", many(before.Batches, "batch", "batches"))
	t.screen.heading("A new server finds the task in the database")
	if err := t.start(ctx); err != nil {
		return err
	}
	deadline, cancel := context.WithTimeout(ctx, takeoverWithin)
	defer cancel()
	resumed := ""
	found, err := t.client.until(deadline, id, func(v *taskView) bool {
		if strings.Contains(v.StatusMessage, "resumed") {
			resumed = v.StatusMessage
		}
		return v.Status.Ended() || resumed != "" || v.done() > float64(before.Closed)
	})
	if err != nil {
		return fmt.Errorf("the new server does not go on with the task: %w", err)
	}
	if !v.Status.Ended() {
		t.screen.say("%s after the other one's death its lease was over: the handler was called again, with the "+
			"same arguments. The task is %s, %q.", brief(time.Since(killed)), found.Status, found.StatusMessage)
	}
	if v, err = t.watch(ctx, id, ended); err != nil {
		return err
	}
	if v.Status != tasks.Completed {
		return fmt.Errorf("the task is %s, %q: %s%s", v.Status, v.StatusMessage, v.Error, v.Result)
	}
	var status Status
	if err := structured(v.Result, &status); err != nil {
		return err
	}
	t.screen.say("%s: %s, %s closed, %s delivered, in %s.", status.State, many(status.Batches, "batch", "batches"),
		many(status.Closed, "posting", "postings"), many(status.Notified, "notice", "notices"), many(status.Runs, "run", "runs"))
	after, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	t.check("the task's result equals the database", status == *after, many(after.Batches, "batch", "batches"))
	t.check("what was committed before the kill was kept", after.Closed >= before.Closed && after.Batches >= before.Batches,
		many(before.Batches, "batch", "batches"))
	return t.breathe(ctx)
}

// lookBack asks for the tasks once more, as somebody does who was away.
func (t *taskStory) lookBack(ctx context.Context, first, second string) error {
	before, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	t.another()
	for _, id := range []string{first, second} {
		was, err := t.client.get(ctx, id)
		if err != nil {
			return err
		}
		if err := t.client.cancel(ctx, id); err != nil {
			return err
		}
		is, err := t.client.get(ctx, id)
		if err != nil {
			return err
		}
		t.check("a task that has ended does not change any more", is.Status == was.Status && string(is.Result) == string(was.Result), "2 tasks")
	}
	after, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	t.check("a late tasks/cancel changed nothing", *after == *before, many(t.clients, "client", "clients"))
	record, err := t.store.Load(ctx, second)
	if err != nil {
		return err
	}
	t.check("the store says how often the task was begun", record.Status == tasks.Completed && record.Run == t.runs,
		many(record.Run, "time", "times"))
	return nil
}
