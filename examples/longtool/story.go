package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// A story is one telling of what happens when Stop is pressed. It plays the
// caller at the top of the chain, reads the database at its bottom, and says
// nothing that it has not looked up in one of the layers between.
type story struct {
	options   *options
	screen    *screen
	db        *database
	reach     *reach
	link      *link
	operation string
	again     bool // the story was told before: it is shorter
	delay     time.Duration

	board  size
	closed int       // postings, as far as the last report said
	calls  int       // of the tool; each has its own progress token
	stops  []stopped // calls
	checks []finding // what the story itself proves, beside the database's invariants
}

// A stopped call is one that its caller stopped.
type stopped struct {
	token  string // its progress token
	record *Stop  // the server's; nil without one
}

// tell tells the whole story, over each way to reach the server, and returns
// the exit status.
func tell(ctx context.Context, o *options, s *screen) (int, error) {
	started := time.Now()
	db, where, closeDB, err := openBoard(ctx, o.db)
	if err != nil {
		return exitUsage, err
	}
	defer closeDB()
	stops := 0
	for i, reach := range []*reach{&overStdio, &overHTTP} {
		t := newStory(o, s, db, reach)
		t.again, t.delay = i > 0, o.delay>>i
		if status, err := t.tell(ctx, where); status != exitOK || err != nil {
			return status, err
		}
		stops += len(t.stops)
	}
	s.heading(fmt.Sprintf("Stop was pressed %s in %s: nothing was lost, and nothing was done twice.",
		many(stops, "time", "times"), time.Since(started).Round(100*time.Millisecond)))
	return exitOK, nil
}

// newStory returns a story about an operation of its own.
func newStory(o *options, s *screen, db *database, reach *reach) *story {
	return &story{
		options: o, screen: s, db: db, reach: reach, delay: o.delay,
		operation: "close-stale-" + strings.ToLower(rand.Text()[:8]),
	}
}

// openBoard opens the database of a story, one that is gone when it is closed if where is
// "". It returns where it is as well.
func openBoard(ctx context.Context, where string) (db *database, at string, closeDB func(), err error) {
	remove := func() {}
	if where == "" {
		dir, err := os.MkdirTemp("", "longtool-")
		if err != nil {
			return nil, "", nil, err
		}
		remove = func() { os.RemoveAll(dir) }
		where = filepath.Join(dir, "board.db")
	}
	if db, err = openDatabase(ctx, where); err != nil {
		remove()
		return nil, "", nil, err
	}
	return db, where, func() { db.Close(); remove() }, nil
}

// tell tells the story over one transport.
func (t *story) tell(ctx context.Context, where string) (int, error) {
	if err := t.fill(ctx); err != nil {
		return exitUsage, err
	}
	var err error
	if t.link, err = t.reach.open(ctx, where); err != nil {
		return exitBroken, err
	}
	status := exitBroken
	if err = t.parts(ctx); err == nil {
		status, err = t.prove(ctx)
	}
	// Closed last, so that a late message would still be heard.
	if closeErr := t.link.close(); err == nil && closeErr != nil {
		err = fmt.Errorf("the server did not end well: %w", closeErr)
	}
	if err != nil {
		return exitBroken, t.link.broken(err)
	}
	return status, nil
}

func (t *story) parts(ctx context.Context) error {
	for _, part := range []func(context.Context) error{t.stopInTheStatement, t.stopInTheCommit, t.complete, t.repeat} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *story) fill(ctx context.Context) error {
	if t.again {
		t.screen.heading("The same over " + t.reach.name + ", twice as fast")
	} else {
		t.screen.heading("A job board")
	}
	err := t.db.fill(ctx, t.options.postings, func(done, total int) {
		t.screen.bar(float64(done), float64(total), "filling it")
	})
	if err != nil {
		return err
	}
	if t.board, err = t.db.size(ctx); err != nil {
		return err
	}
	t.screen.say("%s and %s, %s, in %s.", many(t.board.stale, "stale posting", "stale postings"),
		many(t.board.fresh, "fresh one", "fresh ones"), many(t.board.applicants, "applicant", "applicants"), t.db.dialect)
	return t.breathe(ctx)
}

// firstStop is the number of batches after which Stop is pressed first;
// secondStop is the batch in whose commit it is pressed again.
func (t *story) firstStop() int { return min(4, t.batches()/3) }
func (t *story) secondStop() int {
	return t.firstStop() + 1 + min(2, (t.batches()-t.firstStop())/3)
}
func (t *story) batches() int { return (t.board.stale + t.options.batch - 1) / t.options.batch }

// batchOf is the batch that a report is about.
func (t *story) batchOf(p progress) int {
	return int(math.Ceil(p.done / float64(t.options.batch)))
}

func (t *story) stopInTheStatement(ctx context.Context) error {
	version := "?"
	if hello := t.link.session.InitializeResult(); hello != nil {
		version = hello.ProtocolVersion
	}
	t.screen.heading("A long call, and Stop")
	t.screen.say("Started “longtool %s” and connected to it with the official Go SDK's client (MCP %s). "+
		"Calling %s, operation %s: batches of %d, %s each.",
		t.reach.serve, version, closeTool, t.operation, t.options.batch, short(t.delay))
	if t.reach.origin == cancellation.Disconnect {
		t.screen.say("No message means Stop here: the client closes the response that it is waiting for.")
	}
	c, err := t.call(ctx, func(p progress) (time.Duration, bool) {
		// half of the way through the statement of the batch after
		ready := p.phase != phaseCommitting && t.batchOf(p) >= t.firstStop()
		return t.delay * 3 / 8, ready
	})
	if err != nil {
		return err
	}
	_, err = t.afterStop(ctx, c)
	return err
}

func (t *story) stopInTheCommit(ctx context.Context) error {
	t.screen.heading("Retry with the same operation id, and a late Stop")
	t.screen.say("This time Stop is pressed while a batch is being committed.")
	for try := 1; ; try++ {
		c, err := t.call(ctx, func(p progress) (time.Duration, bool) {
			return 0, p.phase == phaseCommitting && t.batchOf(p) >= t.secondStop()
		})
		if err != nil {
			return err
		}
		late, err := t.afterStop(ctx, c)
		if err != nil || late || !c.stopped() || try == commitTries || t.left() < 2 {
			return err
		}
		t.screen.say("That commit was through before Stop arrived. Once more, in the next one.")
	}
}

// commitTries is how often Stop is pressed during a commit, until one is met: on a busy machine a
// commit may be over first.
const commitTries = 3

// left is how many batches are still to be done.
func (t *story) left() int {
	return (t.board.stale - t.closed + t.options.batch - 1) / t.options.batch
}

func (t *story) complete(ctx context.Context) error {
	t.screen.heading("Retry with the same operation id, to the end")
	c, err := t.call(ctx, func(progress) (time.Duration, bool) { return 0, false })
	if err != nil {
		return err
	}
	t.screen.say("%s: %s, %s closed, %s delivered, in %s.", c.status.State,
		many(c.status.Batches, "batch", "batches"), many(c.status.Closed, "posting", "postings"),
		many(c.status.Notified, "notice", "notices"), many(c.status.Runs, "call", "calls"))
	return t.breathe(ctx)
}

// repeat calls once more, as a caller does that never saw the answer.
func (t *story) repeat(ctx context.Context) error {
	before, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	c, err := t.call(ctx, nil)
	if err != nil {
		return err
	}
	after, err := t.db.status(ctx, t.operation)
	if err != nil {
		return err
	}
	t.screen.say("Called once more, as by a caller that never saw the answer: the same answer, and nothing is done again.")
	t.check("a further call with the same id changed nothing", c.status == *before && *after == *before,
		many(after.Runs, "call", "calls")+" did the work")
	return nil
}

// afterStop asks each layer what it knows, from the button down. It reports whether the last batch was
// committed after the cancel came.
func (t *story) afterStop(ctx context.Context, c *call) (late bool, err error) {
	if !c.stopped() {
		t.screen.say("The job was through before Stop could be pressed: give it more -postings, or more -delay.")
		return false, nil
	}
	if err := t.breathe(ctx); err != nil {
		return false, err
	}
	report, stop, err := t.reconcile(ctx, c)
	if err != nil {
		return false, err
	}
	t.stops = append(t.stops, stopped{c.token, stop})
	if stop != nil {
		t.check(t.reach.how+" is what stopped the work", stop.Origin == t.reach.origin.String(),
			many(len(t.stops), "call", "calls"))
	}
	rows, err := t.db.rowsOf(ctx, t.operation)
	if err != nil {
		return false, err
	}
	entries, err := t.db.entries(ctx, t.operation)
	if err != nil {
		return false, err
	}
	t.screen.layers([]layer{
		callerLayer(c), wireLayer(t.link.tap.silence(c.token, stop)), serverLayer(stop), rows.layer(t.board), ledgerLayer(entries, stop),
	})
	t.screen.say("Asked by operation id, the server says: %s, with %s and %s. That is all a caller needs to go on.", report.Status.State,
		many(report.Status.Batches, "batch", "batches"), many(report.Status.Closed, "posting", "postings"))
	if err := t.auditBetween(ctx); err != nil {
		return false, err
	}
	return committedLate(entries, stop), t.breathe(ctx)
}

// breathe gives a reader time, when there is one.
func (t *story) breathe(ctx context.Context) error {
	if !t.screen.live || t.screen.quiet {
		return ctx.Err()
	}
	if t.again {
		return pause(ctx, 400*time.Millisecond)
	}
	return pause(ctx, 800*time.Millisecond)
}
