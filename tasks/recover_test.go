package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var resumable = tasks.ToolOptions{Support: tasks.WhenPossible, OnRestart: tasks.Resume}

// life is one process of a server whose tasks outlive it.
func life(t *testing.T, store tasks.Store, owner string) *rig {
	return newRig(t, &tasks.Options{Store: store, Owner: owner}, nil)
}

// A shutdown hands over what can be gone on with; the rest ends with it.
func TestShutdownHandsOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first := life(t, memory, "")
		runs := make(chan string, 9)
		job := func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			task, _ := tasks.FromContext(ctx)
			runs <- task.ID() + string(in) + req.TokenInfo().UserID
			if task.Run() > 1 {
				return text("done in run %d", task.Run()), nil
			}
			return untilStopped(ctx, req, in)
		}
		first.add("resumes", resumable, job)
		first.add("fails", possible, untilStopped)
		first.add("finishes", resumable, func(ctx context.Context, _ *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			return text("done all the same"), nil
		})
		c := first.as("alice")
		resumes := c.begin(t, "resumes", M{"arguments": M{"n": 1}})
		fails, finishes := c.begin(t, "fails", nil), c.begin(t, "finishes", nil)
		stopped := make(chan string, 1)
		first.add("stopped", resumable, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			defer func() { stopped <- cancellation.Checkpoint(ctx).Error() }()
			return untilStopped(ctx, req, in)
		})
		cancelled := c.begin(t, "stopped", nil)
		c.cancel(t, cancelled)
		assert.Equal(t, `cancelled by peer: "tasks/cancel"`, <-stopped)
		require.NoError(t, first.server.Drain(t.Context()))
		assert.Equal(t, 0, first.manager.Running())
		_, _, err := first.manager.Recover(t.Context())
		require.ErrorIs(t, err, server.ErrDraining)

		second := life(t, memory, "")
		second.add("resumes", resumable, job)
		c = second.as("alice")
		s := c.get(t, resumes)
		assert.Equal(t, "working", s.Status)
		assert.Equal(t, "the server is shutting down; another one will go on", s.StatusMessage)
		s = c.get(t, fails)
		assert.Equal(t, "completed", s.Status)
		assert.True(t, s.Result.IsError)
		assert.Equal(t, `cancelled by shutdown: "the server is shutting down"`, s.StatusMessage)
		assert.Equal(t, "done all the same", c.get(t, finishes).Result.Content[0].Text)
		assert.Equal(t, "cancelled", c.get(t, cancelled).Status)

		resumed, ended, err := second.manager.Recover(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int{1, 0}, []int{resumed, ended})
		settle()
		s = c.get(t, resumes)
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, "done in run 2", s.Result.Content[0].Text)
		assert.Equal(t, resumes+`{"n":1}alice`, <-runs)
		assert.Equal(t, resumes+`{"n":1}alice`, <-runs, "the same operation, with the same arguments, for the same principal")
		requireUnknown(t, second.client().request("tasks/get", M{"taskId": resumes}))
	})
}

// die ends a process without a word: its leases run out. What its handlers still do
// must not matter to anybody.
func die(r *rig) { r.manager.Close() }

func TestCrash(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first := life(t, memory, "")
		release, ends := make(chan struct{}), make(chan error, 3)
		stuck := func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			<-release
			return text("from the dead"), nil
		}
		for _, tool := range []string{"resumes", "fails", "stops", "gone"} {
			first.add(tool, resumable, stuck)
		}
		c := first.client()
		ids := map[string]string{}
		for _, tool := range []string{"resumes", "fails", "stops", "gone"} {
			ids[tool] = c.begin(t, tool, nil)
		}
		c.cancel(t, ids["stops"])
		die(first)

		second := life(t, memory, "")
		second.add("resumes", resumable, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			ends <- nil
			return lasting(time.Hour)(ctx, req, in)
		})
		second.add("fails", possible, stuck)
		second.add("stops", resumable, stuck)
		resumed, ended, err := second.manager.Recover(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int{0, 0}, []int{resumed, ended}, "the leases are not over")
		time.Sleep(20 * time.Second)
		settle()
		c = second.client()
		assert.Equal(t, "working", c.get(t, ids["resumes"]).Status)
		require.NoError(t, <-ends, "its handler was called again")
		s := c.get(t, ids["fails"])
		assert.Equal(t, "failed", s.Status)
		assert.Equal(t, -32603, s.Error.Code)
		assert.Equal(t, "the server was restarted while the task was running", s.Error.Message)
		assert.JSONEq(t, `{"origin":"shutdown"}`, string(s.Error.Data))
		assert.Equal(t, "failed", c.get(t, ids["gone"]).Status)
		assert.Contains(t, c.get(t, ids["gone"]).StatusMessage, "does not have the tool")
		s = c.get(t, ids["stops"])
		assert.Equal(t, "cancelled", s.Status, "its work has died with its process")

		// The first process was not dead after all; what it does counts no more.
		close(release)
		settle()
		assert.Equal(t, "working", c.get(t, ids["resumes"]).Status)
		time.Sleep(2 * time.Hour)
		settle()
		assert.Equal(t, "done", c.get(t, ids["resumes"]).Result.Content[0].Text)
	})
}

// A process that comes back under its name need not wait for leases.
func TestSameOwnerTakesOverAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first := life(t, memory, "jobs-1")
		first.add("slow", resumable, untilStopped)
		id := first.client().begin(t, "slow", nil)
		die(first)
		second := life(t, memory, "jobs-1")
		second.add("slow", resumable, lasting(time.Second))
		resumed, _, err := second.manager.Recover(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, resumed)
		time.Sleep(2 * time.Second)
		settle()
		assert.Equal(t, "completed", second.client().get(t, id).Status)
		// The first one learns of it when it writes the next time.
		require.NoError(t, first.manager.Cancel(t.Context(), id, "give up"))
		settle()
		assert.Equal(t, "completed", second.client().get(t, id).Status)
	})
}

// A manager whose task was taken over is told so when it stores something, and stops.
func TestTakenOverWorkIsStopped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first := life(t, memory, "")
		why := make(chan error, 1)
		first.add("slow", resumable, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			for n := 1.0; ; n++ {
				time.Sleep(time.Second)
				if err := req.Progress(ctx, n, 0, ""); err != nil {
					why <- err
					return nil, err
				}
			}
		})
		id := first.client().begin(t, "slow", nil)
		claimed, err := memory.Claim(t.Context(), "somebody else", time.Now().Add(time.Hour), time.Now().Add(2*time.Hour), 9)
		require.NoError(t, err)
		require.Len(t, claimed, 1)
		assert.EqualError(t, <-why, `cancelled by shutdown: "another process has taken the task over"`)
		settle()
		r, err := memory.Load(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, tasks.Working, r.Status)
		assert.Equal(t, "somebody else", r.Owner)
	})
}

// Handlers of the returning style go on with the round that was answered last.
func TestResumeGoesOnWithTheLastRound(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		hang := true
		job := func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			answer, _ := req.InputResponses()["user"].(*mcp.ElicitResult)
			if answer == nil {
				return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
					"user": &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(form)},
				}}, nil
			}
			if hang {
				return untilStopped(ctx, req, in)
			}
			return text("%v, %s", answer.Content["name"], req.RequestState()), nil
		}
		o := resumable
		o.After = -1
		first := life(t, memory, "")
		first.add("asks", o, job)
		id := first.client().begin(t, "asks", nil)
		settle()
		first.client().update(t, id, M{"user": accept(M{"name": "Ada"})})
		settle()
		require.NoError(t, first.server.Drain(t.Context()))
		hang = false
		second := life(t, memory, "")
		second.add("asks", o, job)
		resumed, _, err := second.manager.Recover(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, resumed)
		settle()
		assert.Equal(t, "Ada, asked", second.client().get(t, id).Result.Content[0].Text)
	})
}

// Whoever shares the store can ask for a task, stop it and answer its questions.
func TestAnotherProcessReachesTheTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first, second := life(t, memory, ""), life(t, memory, "")
		first.add("asks", possible, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			name, err := ask(ctx, req, "Who?")
			if err != nil {
				return nil, err
			}
			_ = req.Progress(ctx, 1, 0, name)
			return untilStopped(ctx, req, in)
		})
		id := first.client().begin(t, "asks", nil)
		settle()
		c := second.client()
		s := c.get(t, id)
		require.Equal(t, "input_required", s.Status)
		c.update(t, id, M{s.keys()[0]: accept(M{"name": "Ada"})})
		time.Sleep(10 * time.Second)
		settle()
		s = c.get(t, id)
		assert.Equal(t, "working", s.Status)
		assert.Equal(t, "1: Ada", s.StatusMessage)
		c.cancel(t, id)
		time.Sleep(10 * time.Second)
		settle()
		assert.Equal(t, "cancelled", c.get(t, id).Status)
		c.cancel(t, id)
	})
}

// The lease is kept while the work runs, however long that takes.
func TestLeaseIsRenewed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		first, second := life(t, memory, ""), life(t, memory, "")
		for _, r := range []*rig{first, second} {
			r.add("slow", resumable, lasting(3*time.Hour))
		}
		id := first.client().begin(t, "slow", nil)
		_, _, err := second.manager.Recover(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		settle()
		assert.Equal(t, 1, first.manager.Running())
		assert.Equal(t, 0, second.manager.Running())
		time.Sleep(2 * time.Hour)
		settle()
		assert.Equal(t, "completed", second.client().get(t, id).Status)
	})
}

// What was left too long is not begun again.
func TestRecoverEndsWhatHasExpired(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		require.NoError(t, memory.Create(t.Context(), &tasks.Record{
			ID: "old", Tool: "slow", Status: tasks.Working, Created: time.Now(), TTL: time.Minute, Run: 1,
			Version: server.Version20260728, Params: json.RawMessage(`{"name":"slow"}`),
		}))
		time.Sleep(time.Hour)
		r := life(t, memory, "")
		r.add("slow", resumable, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, errors.New("it was begun again")
		})
		resumed, ended, err := r.manager.Recover(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int{0, 1}, []int{resumed, ended})
		time.Sleep(2 * time.Minute)
		settle()
		assert.Equal(t, 0, memory.Len())
	})
}

// A record that no server can serve is marked, not lost.
func TestRecoverOfWhatCannotBeResumed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := tasks.NewMemory(0, 0)
		require.NoError(t, memory.Create(t.Context(), &tasks.Record{
			ID: "odd", Tool: "slow", Status: tasks.Working, Created: time.Now(), TTL: time.Hour, Run: 1,
			Version: "1999-01-01", Params: json.RawMessage(`{"name":"slow"}`),
		}))
		r := life(t, memory, "")
		r.add("slow", resumable, untilStopped)
		_, ended, err := r.manager.Recover(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, ended)
		s := r.client().get(t, "odd")
		assert.Equal(t, "failed", s.Status)
		assert.Contains(t, s.StatusMessage, "could not be resumed")
	})
}
