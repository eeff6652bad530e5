package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// probe is one run of a rule. One goroutine runs it, and leaves it by Goexit once
// the verdict is known.
type probe struct {
	ctx     context.Context // ends with the rule's time
	over    *time.Timer     // ends ctx; put off by deadline
	ends    time.Time       // when that is
	target  *Target
	limits  Limits
	setting Setting
	survey  *survey // nil while the survey itself is made
	log     *wire.Log

	verdict  Verdict
	cleanups []func() // in the order of their making
	tags     int64    // the last that was given
}

// tagsOfAll makes tags that differ between all probes of a process, which may
// talk to the same server.
var tagsOfAll atomic.Int64

// judge runs a rule in the setting that the survey was made in.
func judge(ctx context.Context, t *Target, s *survey, rule Rule) Verdict {
	if why := s.lacks(rule.Needs); why != "" {
		return Verdict{Rule: rule, Setting: s.setting, Status: Skip, Reason: why}
	}
	return runProbe(ctx, t, s, s.setting, rule)
}

var errRuleTime = errors.New("the time for this rule is over")

func runProbe(ctx context.Context, t *Target, s *survey, setting Setting, rule Rule) Verdict {
	limits := t.Limits.withDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &probe{
		ctx: ctx, target: t, limits: limits, setting: setting, survey: s, log: wire.NewLog(),
		verdict: Verdict{Rule: rule, Setting: setting, Status: Pass},
	}
	p.tags = tagsOfAll.Add(1) << 20
	began := time.Now()
	p.ends = began.Add(limits.Rule)
	p.over = time.AfterFunc(limits.Rule, func() {
		p.log.Notef("%v", errRuleTime)
		cancel(errRuleTime) // a write to a server that does not read ends only when that is closed
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.clean()
		rule.run(p)
	}()
	<-done
	p.over.Stop()
	p.verdict.Took = time.Since(began)
	if p.verdict.Wire == nil {
		p.verdict.Wire = p.log.Since(0)
	}
	return p.verdict
}

// clean closes what was opened, the last first.
func (p *probe) clean() {
	for len(p.cleanups) > 0 {
		last := p.cleanups[len(p.cleanups)-1]
		p.cleanups = p.cleanups[:len(p.cleanups)-1]
		last()
	}
}

func (p *probe) onClean(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *probe) end(status Status, format string, args []any) {
	p.verdict.Status, p.verdict.Reason = status, fmt.Sprintf(format, args...)
	if p.log.Full() {
		p.verdict.Reason += " (the server sends more than anybody can read)"
	}
	p.verdict.Wire = p.log.Since(0) // without what the cleaning adds
	p.clean()
	runtime.Goexit()
}

// failf ends the rule: the server breaks it.
func (p *probe) failf(format string, args ...any) { p.end(Fail, format, args) }

// skipf ends the rule: it cannot be judged.
func (p *probe) skipf(format string, args ...any) { p.end(Skip, format, args) }

// errorf ends the rule: it could not be found out.
func (p *probe) errorf(format string, args ...any) { p.end(Error, format, args) }

// sleep lets time pass.
func (p *probe) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
		p.errorf("the rule took longer than %s", p.limits.Rule)
	}
}

// tag names something in this probe and no other.
func (p *probe) tag() string {
	p.tags++
	return fmt.Sprintf("t%d", p.tags)
}
