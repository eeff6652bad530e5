package tasks_test

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ten thousand tasks at once, all of them cancelled; nothing is left of them but
// their records.
func TestTenThousandTasks(t *testing.T) {
	const count = tasksAtOnce
	memory := tasks.NewMemory(count, 0)
	r := newRig(t, &tasks.Options{Store: memory}, nil)
	var began sync.WaitGroup
	began.Add(count)
	r.add("wait", atOnce, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
		began.Done()
		return untilStopped(ctx, req, in)
	})
	goroutines := runtime.NumGoroutine()
	c := r.client()
	ids := make([]string, count)
	parallel(count, func(i int) {
		var s state
		if err := json.Unmarshal(c.callTool("wait", nil).Result, &s); err != nil {
			t.Error(err)
		}
		ids[i] = s.TaskID
	})
	began.Wait()
	require.Equal(t, count, r.manager.Running())
	require.Equal(t, count, r.server.Stats().InFlight)

	// One more finds no room, and is answered itself; its client gives up.
	e := c.startTool("wait", nil)
	began.Add(1)
	began.Wait()
	require.True(t, e.call.Cancel(cancellation.Disconnect, "enough"))
	e.wait()

	parallel(count, func(i int) {
		if m := c.request("tasks/cancel", M{"taskId": ids[i]}); m.Error != nil {
			t.Error(m.Error)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, r.server.Stateless().Wait(ctx))
	for _, id := range ids {
		record, err := memory.Load(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, tasks.Cancelled, record.Status)
	}
	assert.Equal(t, count, memory.Len())
	assert.Equal(t, 0, r.manager.Running())
	assert.Zero(t, r.server.Stats().InFlight)
	assert.Zero(t, r.server.Stats().Lingering)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+2 }, time.Minute, time.Millisecond)
}

// parallel calls f for 0 to n-1, some of them at the same time.
func parallel(n int, f func(int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}
