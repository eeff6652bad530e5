package server

import (
	"fmt"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// Limited reports whether the request has a time limit of its own, its tool's or
// the server's, so that it may have to be answered while its handler still runs.
func (c *Call) Limited() bool {
	return !c.method.endless && (c.ownLimit() > 0 || c.hardLimit() > 0)
}

// startLimit starts the request's time limit, if it has one. It runs once,
// before the handler starts.
func (c *Call) startLimit() {
	if c.Limited() {
		c.setLimit(c.ownLimit())
	}
}

// ownLimit is the tool's limit, or else the server's.
func (c *Call) ownLimit() time.Duration {
	if t := c.method.toolOf(c); t != nil && t.options.Timeout != 0 {
		return t.options.Timeout
	}
	return c.server.options.Timeout
}

func (c *Call) hardLimit() time.Duration {
	if c.detached != nil {
		return 0 // the request's own hard maximum ends with the request
	}
	if t := c.method.toolOf(c); t != nil && t.options.MaxTimeout != 0 {
		return t.options.MaxTimeout
	}
	return c.server.options.MaxTimeout
}

func (c *Call) resetsOnProgress() bool {
	if t := c.method.toolOf(c); t != nil && t.options.ResetOnProgress {
		return true
	}
	return c.server.options.ResetOnProgress
}

// setLimit ends the request d from now, or when the hard maximum is reached,
// whichever is first. d of 0 or less leaves only the hard maximum.
func (c *Call) setLimit(d time.Duration) {
	if d < 0 {
		d = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source.Requested() != nil || c.handler.Load() == handlerReturned {
		return
	}
	c.stopTimerLocked()
	c.limit = d
	c.armLocked()
}

// progressed starts the limit anew, where that was asked for.
func (c *Call) progressed() {
	if !c.resetsOnProgress() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil && c.limit > 0 && c.timer.Stop() {
		c.armLocked()
	}
}

func (c *Call) armLocked() {
	wait, what := c.limit, "limit"
	if hard := c.hardLimit(); hard > 0 {
		left := hard
		if c.waited >= 0 {
			left = max(hard-time.Since(c.started()), 0)
		}
		if wait <= 0 || left < wait {
			wait, what = left, "hard maximum"
		}
		if what == "hard maximum" {
			c.timer = time.AfterFunc(wait, func() { c.expire(what, hard) })
			return
		}
	}
	if wait > 0 {
		limit := c.limit
		c.timer = time.AfterFunc(wait, func() { c.expire(what, limit) })
	}
}

func (c *Call) expire(what string, d time.Duration) {
	c.cancel(cancellation.Timeout, fmt.Sprintf("%s of %v reached", what, d))
}

func (c *Call) stopTimerLocked() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}
