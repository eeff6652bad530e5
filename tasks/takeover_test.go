package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// takenBy has another process take over all tasks whose lease runs out within the hour.
func takenBy(t *testing.T, store tasks.Store, owner string) {
	claimed, err := store.Claim(t.Context(), owner, time.Now().Add(time.Hour), time.Now().Add(2*time.Hour), 99)
	require.NoError(t, err)
	require.NotEmpty(t, claimed)
}

// A process that has lost a task and does not know it yet passes on what a client wants of that: the stop, and the answers, are
// for the one that runs it now.
func TestALostTaskIsTheOtherProcesss(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first := life(t, memory, "first")
		release := make(chan struct{})
		first.add("asks", resumable, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			_, err := ask(ctx, req, "Who?")
			<-release // it takes its time to stop
			return nil, err
		})
		c := first.client()
		id := c.begin(t, "asks", nil)
		settle()
		key := c.get(t, id).keys()[0]
		takenBy(t, memory, "second")

		c.cancel(t, id)
		settle()
		c.cancel(t, id) // and again, while its own work has not returned
		c.update(t, id, M{key: accept(M{"name": "Ada"})})
		signals, err := memory.Renew(t.Context(), "second", time.Now().Add(time.Hour))
		require.NoError(t, err)
		stops, answers := 0, 0
		for _, s := range signals {
			assert.Equal(t, id, s.Task)
			if s.Stop != nil {
				assert.Equal(t, "peer", s.Stop.Origin)
				stops++
			}
			if s.Responses[key] != nil {
				answers++
			}
		}
		assert.Equal(t, []int{2, 1}, []int{stops, answers})
		close(release)
		settle()
		record, err := memory.Load(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, "second", record.Owner)
		assert.False(t, record.Status.Ended(), "the first one's end does not count")
	})
}

// A task comes back to a process in which its work of long ago still runs: the end of that leaves the new run alone, which can be
// stopped as any other.
func TestATaskComesBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first := life(t, memory, "first")
		release := make(chan struct{})
		var stopped atomic.Int32
		first.add("slow", resumable, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			if task, _ := tasks.FromContext(ctx); task.Run() == 1 {
				<-release // it hears of nothing
				return text("from long ago"), nil
			}
			defer stopped.Add(1)
			return untilStopped(ctx, req, in)
		})
		_, _, err := first.manager.Recover(t.Context())
		require.NoError(t, err)
		c := first.client()
		id := c.begin(t, "slow", nil)
		takenBy(t, memory, "second")
		require.NoError(t, memory.Release(t.Context(), "second")) // which dies
		time.Sleep(time.Minute)
		settle()
		record, err := memory.Load(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, []any{"first", 3}, []any{record.Owner, record.Run})

		close(release)
		settle()
		assert.Equal(t, 1, first.manager.Running(), "the new run")
		assert.Equal(t, "working", c.get(t, id).Status)
		c.cancel(t, id)
		settle()
		assert.EqualValues(t, 1, stopped.Load())
		assert.Equal(t, "cancelled", c.get(t, id).Status)
		assert.Zero(t, first.manager.Running())
	})
}

// moody is a store that can refuse to renew leases.
type moody struct {
	tasks.Store
	refuses atomic.Bool
}

func (m *moody) Renew(ctx context.Context, owner string, until time.Time) ([]tasks.Signal, error) {
	if m.refuses.Load() {
		return nil, errors.New("out of order")
	}
	return m.Store.Renew(ctx, owner, until)
}

// A process that could not renew its leases for a while does not take its own tasks for those of a dead one.
func TestNobodyTakesOverItsOwnTasks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &moody{Store: tasks.NewMemory(0, 0)}
		r := life(t, store, "only")
		var begun atomic.Int32
		r.add("slow", resumable, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			begun.Add(1)
			return lasting(10*time.Minute)(ctx, req, in)
		})
		_, _, err := r.manager.Recover(t.Context())
		require.NoError(t, err)
		id := r.client().begin(t, "slow", nil)
		store.refuses.Store(true)
		time.Sleep(5 * time.Minute)
		store.refuses.Store(false)
		time.Sleep(6 * time.Minute)
		settle()
		assert.EqualValues(t, 1, begun.Load(), "its handler was called once")
		s := r.client().get(t, id)
		require.Equal(t, "completed", s.Status)
		assert.Equal(t, "done", s.Result.Content[0].Text)
	})
}
