package main

import (
	"context"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
)

// methodWait is a custom method that waits as cancel_wait does.
const methodWait = "heed/wait"

type waitResult struct {
	Text string `json:"text"`
}

func (f *fixture) addMethod() {
	server.MustAddMethod(f.server, methodWait, func(ctx context.Context, _ *servercontext.Request, in timedWait) (waitResult, error) {
		if err := f.wait(ctx, in.Tag, millis(in.MS)); err != nil {
			return waitResult{}, err
		}
		return waitResult{Text: done}, nil
	})
}
