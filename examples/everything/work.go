package main

import (
	"context"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ignoredReports is how often cancel_ignore reports progress.
const ignoredReports = 20 * time.Millisecond

type pollWork struct {
	Tag    string `json:"tag" jsonschema_description:"the name under which the events are recorded"`
	Steps  int    `json:"steps,omitempty" jsonschema:"minimum=0,maximum=1000000,default=10" jsonschema_description:"how many steps the work has"`
	StepMS int    `json:"step_ms,omitempty" jsonschema:"minimum=0,maximum=86400000,default=100" jsonschema_description:"how long a step takes, in milliseconds"`
}

type deafWork struct {
	Tag string `json:"tag" jsonschema_description:"the name under which the events are recorded"`
	MS  int    `json:"ms,omitempty" jsonschema:"minimum=0,maximum=86400000,default=1000" jsonschema_description:"how long the work takes, in milliseconds"`
}

func (f *fixture) addWork() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_poll",
		Description: "Works in steps, with a checkpoint and a progress report before each.",
	}, f.poll)
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_ignore",
		Description: "Works for a time and reports progress every 20 ms without ever looking at its token.",
	}, f.ignore)
}

// poll only looks between steps: its steps themselves cannot be interrupted. A
// step is reported when it begins, so that the last report does not come
// together with the result, where some clients lose it.
func (f *fixture) poll(ctx context.Context, req *servercontext.Request, in pollWork) (string, error) {
	f.events.add(in.Tag, eventStarted, 0, nil)
	for step := range in.Steps {
		err := cancellation.Checkpoint(ctx)
		if err == nil {
			err = req.Progress(ctx, float64(step+1), float64(in.Steps), "")
		}
		if err != nil {
			f.events.add(in.Tag, eventStopped, step, err)
			return "", err
		}
		time.Sleep(millis(in.StepMS))
	}
	return done, nil
}

func (f *fixture) ignore(ctx context.Context, req *servercontext.Request, in deafWork) (string, error) {
	f.events.add(in.Tag, eventStarted, 0, nil)
	deaf := context.WithoutCancel(ctx)
	total := millis(in.MS)
	for worked := time.Duration(0); worked < total; {
		nap := min(ignoredReports, total-worked)
		time.Sleep(nap)
		if worked += nap; worked < total {
			_ = req.Progress(deaf, float64(worked.Milliseconds()), float64(in.MS), "")
		}
	}
	f.events.add(in.Tag, eventReturned, 0, nil)
	return done, nil
}
