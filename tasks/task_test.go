package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
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

func TestInvariant_T1_ATaskThatHasEndedNeverChanges(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		var task *tasks.Task
		r.add("done", possible, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			task, _ = tasks.FromContext(ctx)
			time.Sleep(time.Second)
			return text("done"), nil
		})
		r.add("stopped", possible, untilStopped)
		c := r.client()
		done, stopped := c.begin(t, "done", nil), c.begin(t, "stopped", nil)
		c.cancel(t, stopped)
		time.Sleep(2 * time.Second)
		settle()
		for _, id := range []string{done, stopped} {
			before := c.get(t, id)
			for range 3 {
				c.cancel(t, id)
				c.update(t, id, M{"input": accept(nil)})
				require.NoError(t, r.manager.Cancel(t.Context(), id, "an operator"))
				task.SetMessage("too late")
				time.Sleep(time.Hour)
				settle()
				assert.Equal(t, before.raw, c.get(t, id).raw)
			}
		}
		assert.Equal(t, "completed", c.get(t, done).Status)
		assert.Equal(t, "cancelled", c.get(t, stopped).Status)
	})
}

// While the store fails the task goes on as far as anybody can see: a process that died
// now would leave it so.
func TestInvariant_T2_TheEndIsStoredBeforeItIsSeen(t *testing.T) {
	store := &unreliable{Store: tasks.NewMemory(0, 0), creates: 9}
	inBubble(t, &tasks.Options{Store: store}, func(t *testing.T, r *rig) {
		r.add("slow", possible, lasting(time.Second))
		c := r.client()
		id := c.begin(t, "slow", nil)
		store.set(true)
		time.Sleep(30 * time.Second)
		settle()
		assert.Equal(t, "working", c.get(t, id).Status)
		settle()
		assert.Len(t, r.server.InFlight(), 1, "a shutdown would wait for it")
		store.set(false)
		time.Sleep(5 * time.Second)
		settle()
		assert.Equal(t, "completed", c.get(t, id).Status)
		settle()
		assert.Empty(t, r.server.InFlight())
	})
}

// When the end cannot be stored at all, the task stays with the store as it was, for
// whoever comes next.
func TestEndThatCannotBeStored(t *testing.T) {
	store := &unreliable{Store: tasks.NewMemory(0, 0), creates: 9}
	inBubble(t, &tasks.Options{Store: store}, func(t *testing.T, r *rig) {
		r.add("slow", possible, lasting(time.Second))
		c := r.client()
		id := c.begin(t, "slow", nil)
		store.set(true)
		time.Sleep(2 * time.Minute)
		settle()
		assert.Equal(t, 0, r.manager.Running())
		assert.Equal(t, -32603, c.request("tasks/get", M{"taskId": id}).Error.Code)
		assert.Equal(t, -32603, c.request("tasks/cancel", M{"taskId": id}).Error.Code)
		store.set(false)
		assert.Equal(t, "working", c.get(t, id).Status)
	})
}

func TestInvariant_T3_CancelledOnlyWhenTheWorkHasStopped(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		reasons := make(chan error, 4)
		deaf := func(result *mcp.CallToolResult, err error) handler {
			return func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
				time.Sleep(time.Minute)
				reasons <- req.Progress(ctx, 1, 2, "")
				if result == nil && err == nil {
					panic("no luck")
				}
				return result, err
			}
		}
		r.add("value", possible, deaf(text("done"), nil))
		r.add("error", possible, deaf(nil, errors.New("the disk is full")))
		r.add("foreign", possible, deaf(nil, context.DeadlineExceeded))
		r.add("panic", possible, deaf(nil, nil))
		c := r.client()
		ids := map[string]string{}
		for _, tool := range []string{"value", "error", "foreign", "panic"} {
			ids[tool] = c.begin(t, tool, nil)
			c.cancel(t, ids[tool])
			c.cancel(t, ids[tool]) // once more does no harm
		}
		time.Sleep(30 * time.Second)
		settle()
		for tool, id := range ids {
			s := c.get(t, id)
			assert.Equal(t, "working", s.Status, tool)
			assert.Equal(t, `stop requested by peer: "tasks/cancel"; the work has not stopped yet`, s.StatusMessage)
		}
		unresponsive := r.reportedUnresponsive()
		assert.Len(t, unresponsive, 4)
		for _, u := range unresponsive {
			assert.Equal(t, cancellation.Peer, u.Origin)
			assert.Contains(t, u.Stack, "tasks_test", "the stack is the handler's")
		}
		assert.Equal(t, 4, r.server.Stats().Lingering)
		time.Sleep(time.Minute)
		settle()
		s := c.get(t, ids["value"])
		assert.Equal(t, "completed", s.Status, "what was done all the same is told as done")
		assert.Equal(t, "done", s.Result.Content[0].Text)
		assert.Equal(t, `stop requested by peer: "tasks/cancel"; the work was done all the same`, s.StatusMessage)
		for _, tool := range []string{"error", "foreign", "panic"} {
			s := c.get(t, ids[tool])
			assert.Equal(t, "cancelled", s.Status, tool)
			assert.Equal(t, `cancelled by peer: "tasks/cancel"`, s.StatusMessage)
			assert.Nil(t, s.Result)
			assert.Nil(t, s.Error)
		}
		for range 4 {
			assert.Equal(t, &cancellation.Error{Origin: cancellation.Peer, Reason: "tasks/cancel"}, <-reasons)
		}
		assert.Zero(t, r.server.Stats().Lingering)
		// The figure that operators look at: who was asked to stop, who noticed, who returned.
		measured := 0
		for _, d := range r.reportedDone() {
			if d.Cancelled {
				measured++
				assert.Equal(t, cancellation.Peer, d.Origin)
				assert.False(t, d.Observed.Before(d.Requested))
				assert.False(t, d.Returned.Before(d.Observed))
			}
		}
		assert.Equal(t, 4, measured)
	})
}

func TestInvariant_T4_InputRequiredExactlyWhileQuestionsAreOpen(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("asks", possible, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			var names [2]string
			var errs [2]error
			var both sync.WaitGroup
			for i := range names {
				both.Go(func() { names[i], errs[i] = ask(ctx, req, "Who?") })
			}
			both.Wait()
			time.Sleep(time.Second)
			return text("%v", names), errors.Join(errs[:]...)
		})
		c := r.client()
		before := time.Now()
		id := c.begin(t, "asks", nil)
		assert.Zero(t, time.Since(before), "who asks is a task at once")
		settle()
		s := c.get(t, id)
		require.Equal(t, "input_required", s.Status)
		require.Len(t, s.keys(), 2)
		for _, key := range s.keys() {
			assert.Equal(t, "elicitation/create", s.InputRequests[key].Method)
			assert.JSONEq(t, `{"mode":"form","message":"Who?","requestedSchema":`+form+`}`, string(s.InputRequests[key].Params))
		}
		// What answers nothing, or is no answer, is ignored.
		c.update(t, id, M{"unknown": accept(nil), s.keys()[0]: 7, s.keys()[1]: nil})
		assert.Equal(t, s.keys(), c.get(t, id).keys())

		c.update(t, id, M{s.keys()[0]: accept(M{"name": "Ada"})})
		left := c.get(t, id)
		assert.Equal(t, "input_required", left.Status)
		assert.Equal(t, s.keys()[1:], left.keys())
		c.update(t, id, M{s.keys()[0]: accept(M{"name": "again"}), s.keys()[1]: accept(M{"name": "Bob"})})
		settle()
		assert.Equal(t, "working", c.get(t, id).Status)
		assert.Empty(t, c.get(t, id).keys())
		time.Sleep(time.Second)
		settle()
		assert.Contains(t, []string{"[Ada Bob]", "[Bob Ada]"}, c.get(t, id).Result.Content[0].Text)

		// A stop frees who waits for an answer.
		id = c.begin(t, "asks", nil)
		settle()
		require.Equal(t, "input_required", c.get(t, id).Status)
		c.cancel(t, id)
		assert.Equal(t, "working", c.get(t, id).Status)
		time.Sleep(2 * time.Second)
		settle()
		assert.Equal(t, "cancelled", c.get(t, id).Status)
	})
}

// Both styles of asking, one after the other, with keys that handlers choose badly.
func TestInvariant_T5_NoKeyIsUsedTwice(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("asks", atOnce, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			if req.RequestState() != "3" {
				if _, err := ask(ctx, req, "Who?"); err != nil {
					return nil, err
				}
				state := map[string]string{"": "1", "1": "2", "2": "3"}[req.RequestState()]
				return &mcp.CallToolResult{RequestState: state, InputRequests: mcp.InputRequestMap{
					"input": &mcp.ElicitParams{Message: "Round " + state, RequestedSchema: json.RawMessage(form)},
				}}, nil
			}
			answer := req.InputResponses()["input"].(*mcp.ElicitResult)
			return text("%v", answer.Content["name"]), nil
		})
		c := r.client()
		id := c.begin(t, "asks", nil)
		used := map[string]bool{}
		for round := range 6 {
			settle()
			keys := c.get(t, id).keys()
			require.Len(t, keys, 1)
			require.False(t, used[keys[0]], keys)
			used[keys[0]] = true
			for old := range used { // answers to what was asked before are ignored
				if old != keys[0] {
					c.update(t, id, M{old: accept(M{"name": "old"})})
				}
			}
			c.update(t, id, M{keys[0]: accept(M{"name": fmt.Sprint("answer ", round)})})
		}
		settle()
		s := c.get(t, id)
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, "answer 5", s.Result.Content[0].Text)
	})
}

func TestInvariant_T6_StoredBeforeAnybodyHears(t *testing.T) {
	gate := make(chan struct{})
	memory := tasks.NewMemory(0, 0)
	bubble.Test(t, func(t *testing.T) {
		gate = make(chan struct{})
		r := newRig(t, &tasks.Options{Store: &unreliable{Store: memory, creates: 9, gate: gate}}, nil)
		var id string
		r.add("eager", atOnce, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			task, _ := tasks.FromContext(ctx)
			id = task.ID()
			return untilStopped(ctx, req, in)
		})
		c := r.client()
		e := c.startTool("eager", nil)
		settle()
		select {
		case <-e.answered:
			require.Fail(t, "the client hears of a task that is not stored")
		default:
		}
		assert.Empty(t, id, "the handler has not begun")
		assert.Equal(t, 0, memory.Len())
		close(gate)
		created := e.wait().state(t)
		settle()
		assert.Equal(t, created.TaskID, id)
		c.cancel(t, id)
		settle()
	})
}

// Complete and cancel race; one of them wins, and what is told is consistent.
func TestOneEndWins(t *testing.T) {
	r := newRig(t, nil, nil)
	release := make(chan struct{})
	r.add("race", atOnce, func(ctx context.Context, _ *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
		select {
		case <-release:
			return text("done"), nil
		case <-ctx.Done():
			return nil, cancellation.Checkpoint(ctx)
		}
	})
	c := r.client()
	const count = 300
	ids := make([]string, count)
	for i := range ids {
		ids[i] = c.begin(t, "race", nil)
	}
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			if i == count/2 {
				close(release)
			}
			if m := c.request("tasks/cancel", M{"taskId": id}); m.Error != nil {
				t.Error(m.Error)
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, r.server.Stateless().Wait(ctx))
	ends := map[string]int{}
	for _, id := range ids {
		s := c.get(t, id)
		ends[s.Status]++
		switch s.Status {
		case "completed":
			require.Equal(t, "done", s.Result.Content[0].Text)
			require.False(t, s.Result.IsError)
		case "cancelled":
			require.Nil(t, s.Result)
			kept, err := r.memory.Load(t.Context(), id)
			require.NoError(t, err)
			require.NotNil(t, kept.Stop, "a record says who stopped its task, however fast the handler was")
			require.Equal(t, "peer", kept.Stop.Origin)
		default:
			require.Fail(t, "the task has not ended", s.raw)
		}
	}
	assert.Equal(t, count, ends["completed"]+ends["cancelled"])
}
