package main

import (
	"context"
	"errors"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// toolLimit is the limit of cancel_timeout.
	toolLimit = 200 * time.Millisecond
	// defaultWait is how long fixtures wait that cannot be told; it is the
	// default of ms as well.
	defaultWait = time.Minute
)

// errUnrelated is what cancel_error returns: no cancellation error, to see that
// what a cancelled handler returns does not matter.
var errUnrelated = errors.New("the disk is full")

type tagged struct {
	Tag string `json:"tag" jsonschema_description:"the name under which the events are recorded"`
}

type timedWait struct {
	Tag string `json:"tag" jsonschema_description:"the name under which the events are recorded"`
	MS  int    `json:"ms,omitempty" jsonschema:"minimum=0,maximum=86400000,default=60000" jsonschema_description:"how long to wait, in milliseconds"`
}

// wait records that it has started, blocks until ctx's request is cancelled or d
// is over, records which, and returns the cancellation or nil.
func (f *fixture) wait(ctx context.Context, tag string, d time.Duration) error {
	f.events.add(tag, eventStarted, 0, nil)
	return f.waitOn(ctx, tag, d)
}

// waitOn is wait for work that has started before.
func (f *fixture) waitOn(ctx context.Context, tag string, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		err := cancellation.Checkpoint(ctx)
		f.events.add(tag, eventObserved, 0, err)
		return err
	case <-timer.C:
		f.events.add(tag, eventElapsed, 0, nil)
		return nil
	}
}

// waitForToken records that it has started and blocks until ctx's request is
// cancelled, however long that takes.
func (f *fixture) waitForToken(ctx context.Context, tag string) {
	f.events.add(tag, eventStarted, 0, nil)
	<-ctx.Done()
	f.events.add(tag, eventObserved, 0, cancellation.Checkpoint(ctx))
}

func (f *fixture) addWaits() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_wait",
		Description: "Waits for its token or for a time, and then returns a result either way.",
	}, func(ctx context.Context, _ *servercontext.Request, in timedWait) (string, error) {
		_ = f.wait(ctx, in.Tag, millis(in.MS)) // the result is the same: only the token's state counts
		return done, nil
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_timeout",
		Description: "Waits as cancel_wait does, but no longer than 200 ms, and then fails.",
	}, func(ctx context.Context, _ *servercontext.Request, in timedWait) (string, error) {
		if err := f.wait(ctx, in.Tag, millis(in.MS)); err != nil {
			return "", err
		}
		return done, nil
	}, &server.ToolOptions{Timeout: toolLimit})
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_error",
		Description: "Waits for its token and then fails for another reason.",
	}, func(ctx context.Context, _ *servercontext.Request, in tagged) (string, error) {
		f.waitForToken(ctx, in.Tag)
		return "", errUnrelated
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_panic",
		Description: "Waits for its token and then panics.",
	}, func(ctx context.Context, _ *servercontext.Request, in tagged) (string, error) {
		f.waitForToken(ctx, in.Tag)
		panic("cancel_panic panics")
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_foreign",
		Description: "Fails at once with the cancellation error of a request that is not this one.",
	}, func(context.Context, *servercontext.Request, tagged) (string, error) {
		return "", foreignError()
	})
}

// foreignError is the error of a token that was cancelled by its peer, in a
// request that nobody has sent.
func foreignError() error {
	other := cancellation.New(context.Background())
	defer other.Finish()
	other.Cancel(cancellation.Peer, "somebody else's request was cancelled")
	return other.Token().Err()
}
