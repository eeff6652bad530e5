package tasks_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// off is the store as a process sees it whose clock is wrong: instants that it writes are too late by
// that much, and those that it reads too early.
type off struct {
	tasks.Store
	by atomic.Int64 // nanoseconds
}

func (o *off) jump(by time.Duration) { o.by.Add(int64(by)) }
func (o *off) now() time.Time        { return o.shifted(time.Now()) }

func (o *off) shifted(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Duration(o.by.Load()))
}

func (o *off) written(r *tasks.Record) *tasks.Record {
	w := r.Clone()
	w.Created, w.Updated, w.LeaseUntil = o.shifted(r.Created), o.shifted(r.Updated), o.shifted(r.LeaseUntil)
	return w
}

func (o *off) read(r *tasks.Record) *tasks.Record {
	back := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(-time.Duration(o.by.Load()))
	}
	r.Created, r.Updated, r.LeaseUntil = back(r.Created), back(r.Updated), back(r.LeaseUntil)
	return r
}

func (o *off) Create(ctx context.Context, r *tasks.Record) error {
	return o.Store.Create(ctx, o.written(r))
}

func (o *off) Load(ctx context.Context, id string) (*tasks.Record, error) {
	r, err := o.Store.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.Expired(o.now()) {
		return nil, tasks.ErrNotFound
	}
	return o.read(r), nil
}

func (o *off) Save(ctx context.Context, r *tasks.Record) error {
	return o.Store.Save(ctx, o.written(r))
}

func (o *off) Renew(ctx context.Context, owner string, until time.Time) ([]tasks.Signal, error) {
	return o.Store.Renew(ctx, owner, o.shifted(until))
}

func (o *off) Claim(ctx context.Context, owner string, now, until time.Time, limit int) ([]*tasks.Record, error) {
	claimed, err := o.Store.Claim(ctx, owner, o.shifted(now), o.shifted(until), limit)
	for _, r := range claimed {
		o.read(r)
	}
	return claimed, err
}

func (o *off) Purge(ctx context.Context, now time.Time) (int, error) {
	return o.Store.Purge(ctx, o.shifted(now))
}

// counting is a job of a thousand steps that says where it is after each second.
func counting(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
	task, _ := tasks.FromContext(ctx)
	for step := range 1000 {
		if err := req.Progress(ctx, float64(step+1), 1000, ""); err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, cancellation.Checkpoint(ctx)
		}
	}
	return text("counted in run %d", task.Run()), nil
}

// Of two processes one's clock jumps. Where that makes a lease look over, the other process takes the
// task over and the first one's work is stopped: the task ends once, with one result.
func TestClockJumpsWhileATaskRuns(t *testing.T) {
	for name, jump := range map[string]func(running, other *off){
		"ahead, of the one that looks": func(_, other *off) { other.jump(time.Hour) },
		"back, of the one that runs":   func(running, _ *off) { running.jump(-time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				memory := tasks.NewMemory(0, 0)
				clocks := []*off{{Store: memory}, {Store: memory}}
				first, second := life(t, clocks[0], "first"), life(t, clocks[1], "second")
				first.add("counts", resumable, counting)
				second.add("counts", resumable, counting)
				_, _, err := second.manager.Recover(t.Context())
				require.NoError(t, err)
				c := first.client()
				id := c.begin(t, "counts", nil)
				time.Sleep(100 * time.Second)
				assert.Equal(t, []int{1, 0}, []int{first.manager.Running(), second.manager.Running()}, "clocks that go well change nothing")

				jump(clocks[0], clocks[1])
				time.Sleep(30 * time.Second)
				settle()
				assert.Equal(t, []int{0, 1}, []int{first.manager.Running(), second.manager.Running()})
				done := first.reportedDone()
				require.Len(t, done, 2, "the call, and the work")
				assert.Equal(t, "another process has taken the task over", done[1].Reason)

				time.Sleep(1000 * time.Second)
				settle()
				record, err := memory.Load(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, tasks.Completed, record.Status)
				assert.Contains(t, string(record.Result), "counted in run 2")
			})
		})
	}
}

// A clock that is set back makes the tasks of a dead process wait for as long; then they are gone on with.
func TestClockIsSetBackAfterACrash(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first := life(t, memory, "first")
		release := make(chan struct{})
		defer close(release)
		first.add("counts", resumable, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			<-release
			return text("from the dead"), nil
		})
		id := first.client().begin(t, "counts", nil)
		die(first)

		clock := &off{Store: memory}
		clock.jump(-time.Hour)
		second := life(t, clock, "second")
		second.add("counts", resumable, counting)
		_, _, err := second.manager.Recover(t.Context())
		require.NoError(t, err)
		time.Sleep(59 * time.Minute)
		settle()
		assert.Zero(t, second.manager.Running())
		time.Sleep(2 * time.Minute)
		settle()
		assert.Equal(t, 1, second.manager.Running())
		time.Sleep(time.Hour)
		settle()
		record, err := memory.Load(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, tasks.Completed, record.Status)
		assert.Contains(t, string(record.Result), "counted in run 2")
	})
}

// What has ended is kept until its time to live is over, by the system's clock. What runs is not
// forgotten by a jump: a timer ends it.
func TestClockJumpsOverATimeToLive(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		clock := &off{Store: tasks.NewMemory(0, 0)}
		r := life(t, clock, "")
		hour := tasks.ToolOptions{Support: tasks.WhenPossible, TTL: time.Hour, After: -1}
		r.add("runs", hour, untilStopped)
		r.add("ends", hour, lasting(time.Second))
		c := r.client()
		runs, ends := c.begin(t, "runs", nil), c.begin(t, "ends", nil)
		time.Sleep(2 * time.Second)
		assert.Equal(t, "completed", c.get(t, ends).Status)

		clock.jump(2 * time.Hour)
		requireUnknown(t, c.request("tasks/get", M{"taskId": ends}))
		assert.Equal(t, "working", c.get(t, runs).Status)
		time.Sleep(30 * time.Minute)
		assert.Equal(t, 1, r.manager.Running())
		time.Sleep(30 * time.Minute)
		settle()
		assert.Zero(t, r.manager.Running(), "its hour is over")
	})
}
