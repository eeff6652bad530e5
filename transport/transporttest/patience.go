package transporttest

import (
	"context"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// Limits hold for a machine that has time. On a busy one, what should come is waited for
// longer, as much as work takes longer there: a server is not to be blamed for its
// neighbours. What should not come is not waited for longer.

// deadline is when something should have come.
type deadline struct {
	p        *probe
	at       time.Time
	patience wire.Patience
}

func (p *probe) within(d time.Duration) *deadline {
	return &deadline{p: p, at: time.Now().Add(d), patience: wire.Patience{Limit: d}}
}

// passed tells whether there is nothing to wait for any more. It may put the deadline off.
func (d *deadline) passed() bool {
	switch {
	case d.p.ctx.Err() != nil:
		return true
	case time.Now().Before(d.at):
		return false
	}
	more := d.patience.Next()
	if more <= 0 {
		return true
	}
	d.p.log.Notef("this machine is busy: %s more than the limit of %s", more.Round(time.Millisecond), d.patience.Limit)
	d.at = time.Now().Add(more)
	d.p.ends = d.p.ends.Add(more)
	d.p.over.Reset(time.Until(d.p.ends))
	return false
}

// left is how long it still takes.
func (d *deadline) left() time.Duration { return time.Until(d.at) }

// wait waits for an entry from an index on that should come within d.
func (p *probe) wait(d time.Duration, from int, match func(wire.Entry) bool) (wire.Entry, bool) {
	limit := p.within(d)
	for {
		e, ok := p.listen(limit.left(), from, match)
		if ok || p.log.Full() || limit.passed() {
			return e, ok
		}
	}
}

// listen is wait for what may not come, or must not.
func (p *probe) listen(d time.Duration, from int, match func(wire.Entry) bool) (wire.Entry, bool) {
	ctx, cancel := context.WithTimeout(p.ctx, d)
	defer cancel()
	return p.log.Wait(ctx, from, match)
}

// closedWithin waits until c is closed, which should be within d.
func (p *probe) closedWithin(d time.Duration, c <-chan struct{}) bool {
	limit := p.within(d)
	for {
		if p.closes(limit.left(), c) {
			return true
		}
		if limit.passed() {
			return false
		}
	}
}

// closes is closedWithin for what may stay open.
func (p *probe) closes(d time.Duration, c <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
	case <-p.ctx.Done():
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}
