package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A call is one call of the tool, and how it ended for the caller.
type call struct {
	token   string
	pressed time.Time // zero if Stop was not pressed
	ended   time.Time
	err     error
	status  Status // if it was answered
}

// stopped says that Stop ended the call, as far as its caller can tell.
func (c *call) stopped() bool { return !c.pressed.IsZero() && errors.Is(c.err, context.Canceled) }

// call calls the tool and draws its progress. At the start and after each report
// stop says whether to press Stop, and how much later; nil expects an answer at once.
func (t *story) call(ctx context.Context, stop func(progress) (time.Duration, bool)) (*call, error) {
	t.calls++
	c := &call{token: fmt.Sprintf("call-%d", t.calls)}
	params := toolCall(closeTool, map[string]any{
		"operation_id": t.operation, "batch": t.options.batch, "delay": t.delay.String(),
	})
	params.SetProgressToken(c.token)

	ctx, cancel := context.WithCancel(ctx) // what the Stop button does
	defer cancel()
	ended := make(chan struct{})
	go func() {
		c.err = t.link.call(ctx, params, &c.status)
		c.ended = time.Now()
		close(ended)
	}()

	var button <-chan time.Time
	consider := func(p progress) {
		if stop == nil || button != nil {
			return
		}
		if after, press := stop(p); press {
			button = time.After(after)
		}
	}
	last := progress{token: c.token, done: float64(t.closed), total: float64(t.board.stale)}
	if stop != nil {
		t.screen.bar(last.done, last.total, "calling")
	}
	consider(last)
	for {
		select {
		case p := <-t.link.progress:
			if p.token != c.token {
				continue // a report that was overtaken by its call's end
			}
			last, t.closed = p, int(p.done)
			t.screen.bar(p.done, p.total, fmt.Sprintf("batch %d of %d %s", t.batchOf(p), t.batches(), p.phase))
			consider(p)
		case <-button:
			button = make(chan time.Time) // it is pressed once
			c.pressed = time.Now()
			cancel()
		case <-ended:
			if c.stopped() {
				t.screen.stopped("Stop, while batch " + t.underWay(last))
				return c, nil
			}
			return c, c.err
		}
	}
}

// underWay says in words which batch was under way at the last report.
func (t *story) underWay(last progress) string {
	if last.phase == phaseCommitting {
		return fmt.Sprintf("%d is being committed", t.batchOf(last))
	}
	return fmt.Sprintf("%d is being written", t.batchOf(last)+1)
}

// recordWait is how long reconcile waits for the server's record of a stop. It
// is written when the tool has returned, a moment after it ended its lease. A
// call that was cancelled before its tool began leaves none.
const recordWait = 2 * time.Second

// reconcile asks the server what was committed, once the call is over there as
// well. It returns the server's own record of the stop too, nil without one.
func (t *story) reconcile(ctx context.Context, c *call) (*Report, *Stop, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sent, err := t.link.tap.stopSent(ctx, c.token)
	if err != nil {
		return nil, nil, fmt.Errorf("the client did not pass Stop on: %w", err)
	}
	params := toolCall(statusTool, map[string]any{"operation_id": t.operation, "wait": "30s"})
	for start := time.Now(); ; {
		last := time.Since(start) > recordWait
		var report Report
		if err := t.link.call(ctx, params, &report); err != nil {
			return nil, nil, err
		}
		wire := t.link.tap.silence(c.token, nil)
		for i := range report.Stops {
			if report.Stops[i].RequestID == wire.id {
				return &report, &report.Stops[i], t.compare(ctx, &report)
			}
		}
		if !sent || wire.answered || last {
			return &report, nil, t.compare(ctx, &report)
		}
		if err := pause(ctx, leasePoll); err != nil {
			return nil, nil, err
		}
	}
}
