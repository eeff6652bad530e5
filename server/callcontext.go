package server

import (
	"context"
	"time"

	"github.com/heedmcp/heed/internal/requestkey"
)

// callContext is the context of a call's handler: the token's, in which the call
// itself and its request can be found.
type callContext Call

type callKey struct{}

func (c *callContext) Deadline() (time.Time, bool) { return c.source.Context().Deadline() }
func (c *callContext) Done() <-chan struct{}       { return c.source.Context().Done() }
func (c *callContext) Err() error                  { return c.source.Context().Err() }
func (c *callContext) Value(key any) any {
	switch key {
	case callKey{}:
		return (*Call)(c)
	case requestkey.Key{}:
		return c.request
	}
	return c.source.Context().Value(key)
}

func callFrom(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
