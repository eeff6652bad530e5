package main

import (
	"context"
	"fmt"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sequenceSteps is how often cancel_sequence asks the client.
const sequenceSteps = 3

type nestedCall struct {
	Tag    string `json:"tag" jsonschema_description:"the name under which the events are recorded"`
	Kind   string `json:"kind" jsonschema:"enum=sampling,enum=elicitation_form,enum=elicitation_url,enum=roots,enum=ping" jsonschema_description:"what to ask the client for"`
	ThenMS int    `json:"then_ms,omitempty" jsonschema:"minimum=0,maximum=86400000,default=0" jsonschema_description:"how long to wait afterwards, in milliseconds"`
}

func (f *fixture) addNested() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_nested",
		Description: "Asks the client for something and, if then_ms says so, waits afterwards as cancel_wait does.",
	}, f.nested)
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_sequence",
		Description: "Asks the client to sample its model three times in turn.",
	}, f.sequence)
}

func (f *fixture) nested(ctx context.Context, req *servercontext.Request, in nestedCall) (string, error) {
	f.events.add(in.Tag, eventStarted, 0, nil)
	if err := askFor(ctx, req, in.Kind); err != nil {
		f.events.add(in.Tag, eventNestedError, 0, err)
		return "", err
	}
	f.events.add(in.Tag, eventNestedResult, 0, nil)
	if in.ThenMS > 0 {
		if err := f.waitOn(ctx, in.Tag, millis(in.ThenMS)); err != nil {
			return "", err
		}
	}
	return done, nil
}

func (f *fixture) sequence(ctx context.Context, req *servercontext.Request, in tagged) (string, error) {
	f.events.add(in.Tag, eventStarted, 0, nil)
	for step := 1; step <= sequenceSteps; step++ {
		f.events.add(in.Tag, eventStep, step, nil)
		if err := askFor(ctx, req, "sampling"); err != nil {
			f.events.add(in.Tag, eventNestedError, step, err)
			return "", err
		}
	}
	return done, nil
}

// askFor asks the client for something of a kind and forgets the answer.
func askFor(ctx context.Context, req *servercontext.Request, kind string) (err error) {
	switch kind {
	case "sampling":
		_, err = req.CreateMessage(ctx, sample("Say something.", 10))
	case "elicitation_form":
		_, err = req.Elicit(ctx, form("What is your name?", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`))
	case "elicitation_url":
		_, err = req.Elicit(ctx, &mcp.ElicitParams{
			Mode: "url", Message: "Please sign in.", URL: "https://example.com/sign-in", ElicitationID: "sign-in-" + req.ID(),
		})
	case "roots":
		_, err = req.ListRoots(ctx)
	case "ping":
		err = req.Ping(ctx)
	default:
		err = fmt.Errorf("unknown kind %.80q", kind)
	}
	return err
}
