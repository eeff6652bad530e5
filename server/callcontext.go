package server

import (
	"context"
	"time"
)

// callContext is the context of a call's handler: the token's, in which the call
// itself can be found.
type callContext Call

type callKey struct{}

func (c *callContext) Deadline() (time.Time, bool) { return c.source.Context().Deadline() }
func (c *callContext) Done() <-chan struct{}       { return c.source.Context().Done() }
func (c *callContext) Err() error                  { return c.source.Context().Err() }
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return (*Call)(c)
	}
	return c.source.Context().Value(key)
}

func callFrom(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
