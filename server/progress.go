package server

import (
	"math"
	"strconv"
	"time"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// progressBurst is how many reports of one request are sent without regard to
// their rate.
const progressBurst = 16

// progressState is what a request has reported so far. The call's mu guards it.
type progressState struct {
	token  []byte    // as the client sent it; nil: it asked for no progress
	any    bool      // something was reported; last is meaningless before
	last   float64   // the greatest value reported
	credit float64   // notifications that may be sent at once, at most progressBurst
	earned time.Time // when credit was reckoned up
	held   []byte    // params of the last report, if it was not sent yet
	wakeup *time.Timer
}

// reportProgress sends a progress notification, or keeps it back when the last
// one was too recent.
//
// Specification: basic/utilities/progress (2025-11-25): values increase, rates are limited.
func (c *Call) reportProgress(done, total float64, message string) {
	c.progressed()
	if c.source.Requested() != nil {
		c.server.counters.dropped.Add(1)
		return
	}
	c.mu.Lock()
	p := c.progress
	if p == nil {
		p = &progressState{token: progressToken(c.params.meta), credit: progressBurst, earned: time.Now()}
		c.progress = p
	}
	if p.token == nil || !finite(done) || (p.any && done <= p.last) {
		c.mu.Unlock()
		return
	}
	p.any, p.last = true, done
	into := p.held[:0] // what is still held was seen by nobody: this report replaces it
	if p.held == nil {
		into = make([]byte, 0, 96+len(message))
	}
	params := c.appendProgress(into, done, total, message)
	if interval := c.server.options.ProgressInterval; interval > 0 {
		p.earnLocked(interval)
		if p.credit < 1 {
			p.held = params
			if p.wakeup == nil {
				p.wakeup = time.AfterFunc(interval, c.flushHeldProgress)
			}
			c.mu.Unlock()
			return
		}
		p.credit--
	}
	p.held = params // the newest; whoever writes next sends it
	c.mu.Unlock()
	c.flushProgress()
}

// flushHeldProgress sends the report that was held back long enough, and charges it.
func (c *Call) flushHeldProgress() {
	c.mu.Lock()
	p := c.progress
	if p.held != nil {
		p.earnLocked(c.server.options.ProgressInterval)
		p.credit = max(p.credit-1, 0)
	}
	c.mu.Unlock()
	c.flushProgress()
}

// earnLocked reckons up the credit for the time that has passed.
func (p *progressState) earnLocked(interval time.Duration) {
	now := time.Now()
	p.credit = min(progressBurst, p.credit+float64(now.Sub(p.earned))/float64(interval))
	p.earned = now
}

// flushProgress sends the report that is held back.
func (c *Call) flushProgress() {
	c.out.Lock()
	defer c.out.Unlock()
	c.flushProgressOutLocked()
}

// flushProgressOutLocked takes the held report under mu and sends it under out, so
// that reports leave in the order in which their values grow.
func (c *Call) flushProgressOutLocked() {
	c.mu.Lock()
	params := c.progress.take()
	c.mu.Unlock()
	if params == nil {
		return
	}
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = jsonrpc.AppendNotification(*buf, "notifications/progress", params)
	if err := c.sendOutLocked(*buf); err != nil {
		c.log().Debug("progress could not be sent", "error", err)
	}
}

// take returns the report that is held back, nil if none is, and stops its timer.
func (p *progressState) take() (params []byte) {
	if p == nil {
		return nil
	}
	params, p.held = p.held, nil
	if p.wakeup != nil {
		p.wakeup.Stop()
		p.wakeup = nil
	}
	return params
}

// progressToken returns the client's token as sent, nil without one. Numbers
// are kept as text: a large one must come back exactly.
func progressToken(meta []byte) []byte {
	raw, ok := jsonrpc.Get(meta, "progressToken")
	if !ok {
		return nil
	}
	if _, ok := jsonrpc.ParseID(raw); !ok {
		return nil
	}
	return raw
}

func (c *Call) appendProgress(b []byte, done, total float64, message string) []byte {
	b = append(b, `{"progressToken":`...)
	b = append(b, c.progress.token...)
	b = append(b, `,"progress":`...)
	b = appendNumber(b, done)
	if total > 0 && finite(total) {
		b = append(b, `,"total":`...)
		b = appendNumber(b, total)
	}
	if message != "" && c.rev.toolAnnotations {
		b = append(b, `,"message":`...)
		b = jsonrpc.AppendString(b, message)
	}
	return append(b, '}')
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func appendNumber(b []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.AppendInt(b, int64(f), 10)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}
