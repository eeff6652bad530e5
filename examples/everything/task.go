package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools that may be called as tasks. Each is a plain handler; only its registration says
// what may become of a call.

// jobTime is how long the jobs that fail take.
const jobTime = time.Second

var errJob = errors.New("this job always fails")

type greeting struct {
	Name string `json:"name" jsonschema_description:"whom to greet"`
}

type computation struct {
	Seconds int    `json:"seconds,omitempty" jsonschema:"minimum=0,maximum=86400,default=1" jsonschema_description:"how long it takes"`
	Label   string `json:"label,omitempty" jsonschema_description:"what to call it"`
}

type deletion struct {
	Filename string `json:"filename" jsonschema_description:"what to delete"`
}

// addTasks adds the extension and the tools that are called as tasks, or never are.
func (f *fixture) addTasks() {
	manager, err := tasks.Enable(f.server, nil)
	if err != nil {
		panic(err) // nobody has added it before
	}
	f.tasks = manager
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "greet", Description: "Greets at once, and is never a task.",
	}, func(_ context.Context, _ *servercontext.Request, in greeting) (string, error) {
		return fmt.Sprintf("Hello, %s!", in.Name), nil
	})
	possible, always := tasks.ToolOptions{Support: tasks.WhenPossible}, tasks.ToolOptions{Support: tasks.Always}
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "slow_compute", Description: "Takes its time.",
	}, compute, tasks.Tool(possible))
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "failing_job", Description: "Fails after a second. It can only be called as a task.",
	}, func(ctx context.Context, _ *servercontext.Request, _ nothing) (string, error) {
		if err := pause(ctx, jobTime); err != nil {
			return "", err
		}
		return "", errJob
	}, tasks.Tool(always))
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "protocol_error_job", Description: "Panics after a second.",
	}, func(ctx context.Context, _ *servercontext.Request, _ nothing) (string, error) {
		if err := pause(ctx, jobTime); err != nil {
			return "", err
		}
		panic("protocol_error_job panics")
	}, tasks.Tool(possible))
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "confirm_delete", Description: "Asks before it deletes; in fact it deletes nothing.",
	}, confirmDelete, tasks.Tool(possible))
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "multi_input", Description: "Asks two questions at once.",
	}, askBoth, tasks.Tool(possible))
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_tool_with_task", Description: "Asks for a name first, and then works as a task.",
	}, func(_ context.Context, req *servercontext.Request, _ nothing) (*mcp.CallToolResult, error) {
		return greetByName(req, req.InputResponses()), nil
	}, tasks.Tool(always))
}

func compute(ctx context.Context, req *servercontext.Request, in computation) (string, error) {
	for second := range in.Seconds {
		if err := req.Progress(ctx, float64(second), float64(in.Seconds), in.Label); err != nil {
			return "", err
		}
		if err := pause(ctx, time.Second); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s: computed for %d s", in.Label, in.Seconds), nil
}

func confirmDelete(ctx context.Context, req *servercontext.Request, in deletion) (string, error) {
	const schema = `{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`
	answer, err := req.Elicit(ctx, form(fmt.Sprintf("Delete %q?", in.Filename), schema))
	if err != nil {
		return "", err
	}
	if answer.Action != "accept" || answer.Content["confirm"] != true {
		return in.Filename + " was kept", nil
	}
	return in.Filename + " was deleted", nil
}

func askBoth(ctx context.Context, req *servercontext.Request, _ nothing) (string, error) {
	const schema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	var names [2]any
	var errs [2]error
	var both sync.WaitGroup
	for i, what := range []string{"first", "second"} {
		both.Go(func() {
			answer, err := req.Elicit(ctx, form("What is the "+what+" name?", schema))
			if errs[i] = err; err == nil {
				names[i] = answer.Content["name"]
			}
		})
	}
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return "", err
	}
	return fmt.Sprintf("%v and %v", names[0], names[1]), nil
}
