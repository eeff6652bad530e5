package tasks_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// closeStale is a handler like any other. As a task it outlives the request, and the
// connection, that started it.
func closeStale(ctx context.Context, req *servercontext.Request, in struct {
	Batches int `json:"batches"`
}) (string, error) {
	for batch := range in.Batches {
		if err := req.Progress(ctx, float64(batch), float64(in.Batches), "closing"); err != nil {
			return "", err // stopped by tasks/cancel, a limit, or a shutdown
		}
		select {
		case <-time.After(time.Second): // the work
		case <-ctx.Done():
			return "", cancellation.Checkpoint(ctx)
		}
	}
	return "closed", nil
}

func Example() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	// region enable
	m, err := tasks.Enable(s, &tasks.Options{TTL: 8 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	server.MustAddTool(s, &mcp.Tool{Name: "close_stale", Description: "Closes stale postings."}, closeStale,
		tasks.Tool(tasks.ToolOptions{Support: tasks.WhenPossible, OnRestart: tasks.Resume}))
	// Takes up what an earlier process has left, before requests are served.
	resumed, failed, err := m.Recover(context.Background())
	// endregion
	fmt.Println(resumed, failed, err)
	// Output: 0 0 <nil>
}

// A handler that is run again finds what it has done before by the task's id.
func ExampleFromContext() {
	// region operation
	handler := func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		operation := "a plain call"
		if task, ok := tasks.FromContext(ctx); ok {
			operation = task.ID()
			if err := task.Begin(); err != nil {
				return "", err
			}
		}
		return "worked for " + operation, nil
	}
	// endregion
	fmt.Println(handler(context.Background(), nil, struct{}{}))
	// Output: worked for a plain call <nil>
}
