package main

import (
	"context"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type commit struct {
	Tag string `json:"tag" jsonschema_description:"the name under which the events are recorded"`
	MS  int    `json:"ms,omitempty" jsonschema:"minimum=0,maximum=86400000,default=100" jsonschema_description:"how long the commit takes, in milliseconds"`
}

func (f *fixture) addShield() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_shield",
		Description: "Commits behind a shield: a cancel meanwhile is only noticed when the commit is whole.",
	}, f.commit)
}

func (f *fixture) commit(ctx context.Context, _ *servercontext.Request, in commit) (string, error) {
	f.events.add(in.Tag, eventStarted, 0, nil)
	err := cancellation.Shield(ctx, func(context.Context) error {
		f.events.add(in.Tag, eventEntered, 0, nil)
		time.Sleep(millis(in.MS))
		f.events.add(in.Tag, eventCommitted, 0, nil)
		return nil
	})
	if err != nil { // cancelled before: nothing was begun
		f.events.add(in.Tag, eventObserved, 0, err)
		return "", err
	}
	// What is committed is done, whoever wants to stop now.
	if err := cancellation.Checkpoint(ctx); err != nil {
		f.events.add(in.Tag, eventObserved, 0, err)
	} else {
		f.events.add(in.Tag, eventDone, 0, nil)
	}
	return done, nil
}
