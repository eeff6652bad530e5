package tasks_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgressBecomesTheMessage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		steps := make(chan func(*servercontext.Request, context.Context))
		r.add("steps", possible, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			for step := range steps {
				step(req, ctx)
			}
			return text("done"), nil
		})
		c := r.client()
		e := c.startTool("steps", nil)
		id := e.wait().state(t).TaskID
		report := func(done, total float64, message string) {
			steps <- func(req *servercontext.Request, ctx context.Context) { _ = req.Progress(ctx, done, total, message) }
			settle()
		}
		for _, step := range []struct {
			done, total float64
			message     string
			want        string
		}{
			{1, 10, "", "1 of 10"}, {2.5, 10, "closing", "2.5 of 10: closing"}, {2, 10, "back", "2.5 of 10: closing"},
			{3, 0, "onwards", "3: onwards"}, {4, 0, "", "4"},
		} {
			report(step.done, step.total, step.message)
			assert.Equal(t, step.want, c.get(t, id).StatusMessage)
		}
		steps <- func(_ *servercontext.Request, ctx context.Context) {
			task, ok := tasks.FromContext(ctx)
			require.True(t, ok)
			assert.Equal(t, id, task.ID())
			assert.Equal(t, 1, task.Run())
			assert.NoError(t, task.Begin(), "it has begun long ago")
			task.SetMessage(string(make([]byte, 5000)))
		}
		settle()
		assert.LessOrEqual(t, len(c.get(t, id).StatusMessage), 1003)
		// What was reported is stored once in a while.
		report(5, 0, "")
		time.Sleep(time.Second)
		settle()
		stored, err := r.memory.Load(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, "5", stored.Message)
		// Nothing was sent to whoever had called.
		steps <- func(req *servercontext.Request, _ context.Context) {
			req.Log(servercontext.LevelError, "unheard")
			assert.False(t, req.LogEnabled(servercontext.LevelEmergency))
			assert.NoError(t, req.Notify("notifications/x", nil))
			assert.ErrorIs(t, req.Ping(context.Background()), servercontext.ErrNotSupported)
			assert.ErrorIs(t, req.CloseStream(0), servercontext.ErrNotSupported)
		}
		close(steps)
		settle()
		assert.Empty(t, e.sent)
		assert.Equal(t, "completed", c.get(t, id).Status)
	})
}

func TestLimits(t *testing.T) {
	inBubble(t, &tasks.Options{TTL: time.Hour}, func(t *testing.T, r *rig) {
		limited := tasks.Tool(tasks.ToolOptions{Support: tasks.WhenPossible, Timeout: time.Minute})
		limited.Timeout = time.Second // of the request, before it is a task
		require.NoError(t, server.AddTool(r.server, &mcp.Tool{Name: "limited", InputSchema: M{"type": "object"}}, untilStopped, limited))
		r.add("ttl", possible, untilStopped)
		r.add("own", possible, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			time.Sleep(time.Second)
			req.SetTimeout(10 * time.Second)
			return untilStopped(ctx, req, in)
		})
		r.add("short", tasks.ToolOptions{Support: tasks.WhenPossible, TTL: time.Minute, Poll: -1}, untilStopped)
		r.add("eternal", tasks.ToolOptions{Support: tasks.WhenPossible, TTL: -1, Poll: 5 * time.Second}, untilStopped)
		c := r.client()
		ids := map[string]string{}
		for _, tool := range []string{"limited", "ttl", "own", "short", "eternal"} {
			ids[tool] = c.begin(t, tool, nil)
		}
		assert.Contains(t, c.get(t, ids["eternal"]).raw, `"ttlMs":null,"pollIntervalMs":5000`)
		assert.NotContains(t, c.get(t, ids["short"]).raw, "pollIntervalMs")
		time.Sleep(30 * time.Second)
		settle()
		assert.Equal(t, "working", c.get(t, ids["limited"]).Status)
		s := c.get(t, ids["own"])
		assert.Equal(t, "completed", s.Status)
		assert.True(t, s.Result.IsError)
		assert.Equal(t, `cancelled by timeout: "limit of 10s reached"`, s.StatusMessage)
		time.Sleep(29 * time.Second)
		settle()
		assert.Equal(t, "working", c.get(t, ids["short"]).Status, "it is not forgotten before its time")
		time.Sleep(5 * time.Second)
		settle()
		assert.Equal(t, `cancelled by timeout: "limit of 1m0s reached"`, c.get(t, ids["limited"]).StatusMessage)
		requireUnknown(t, c.request("tasks/get", M{"taskId": ids["short"]}))
		time.Sleep(2 * time.Hour)
		settle()
		requireUnknown(t, c.request("tasks/get", M{"taskId": ids["ttl"]}))
		assert.Equal(t, 1, r.memory.Len(), "what has expired is purged")
		assert.Equal(t, "working", c.get(t, ids["eternal"]).Status)
		c.cancel(t, ids["eternal"])
		settle()
	})
}

// An operator's cancel is no wish of the client's, so the client hears of it.
func TestOperatorCancels(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("slow", possible, untilStopped)
		c := r.client()
		id := c.begin(t, "slow", nil)
		require.NoError(t, r.manager.Cancel(t.Context(), id, "the disk is full"))
		settle()
		s := c.get(t, id)
		assert.Equal(t, "completed", s.Status)
		assert.True(t, s.Result.IsError)
		assert.Equal(t, `cancelled by shutdown: "the disk is full"`, s.StatusMessage)
		require.ErrorIs(t, r.manager.Cancel(t.Context(), "unknown", ""), tasks.ErrNotFound)
		record, err := r.manager.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, tasks.Completed, record.Status)
		assert.Empty(t, record.Params, "what is not run again is not kept")
	})
}
