package transporttest

import (
	"context"
	"errors"
	"sync"
)

// Plan is what to check.
type Plan struct {
	// Settings are tried in turn. 0: all that the target has.
	Settings Setting
	// Rules are tried in each setting in which they apply. nil: all.
	Rules []Rule
	// Parallel is how many rules are tried at the same time. 0: four.
	Parallel int
	// Report is called with each verdict, one at a time, in the order of the rules. nil:
	// nobody is told before the end.
	Report func(Verdict)
}

// Outcome is what came out of a plan.
type Outcome struct {
	Verdicts []Verdict
	// Unspoken are the settings that could not be tried, each with why.
	Unspoken []Unspoken
}

// Unspoken is a setting in which the server could not be tried.
type Unspoken struct {
	Setting Setting
	Reason  string
	Verdict Verdict // of the attempt, for its wire
}

// Check tries rules on a target. It returns when all have their verdicts, or, with
// what there is by then, when ctx has ended.
func Check(ctx context.Context, t *Target, plan Plan) Outcome {
	if plan.Settings == 0 {
		plan.Settings = All
	}
	if t.Dial == nil {
		plan.Settings &^= Streams
	}
	if t.Open == nil {
		plan.Settings &^= OverHTTP
	}
	if plan.Rules == nil {
		plan.Rules = Rules()
	}
	if plan.Parallel <= 0 {
		plan.Parallel = 4
	}
	var out Outcome
	for _, setting := range plan.Settings.Each() {
		if ctx.Err() != nil {
			break
		}
		s, err := look(ctx, t, setting)
		if err != nil {
			u := Unspoken{Setting: setting, Reason: err.Error()}
			var failed *surveyError
			if errors.As(err, &failed) {
				u.Verdict = failed.verdict
			}
			out.Unspoken = append(out.Unspoken, u)
			continue
		}
		out.Verdicts = append(out.Verdicts, plan.inSetting(ctx, t, s)...)
	}
	return out
}

// inSetting tries the rules that apply in a setting.
func (plan Plan) inSetting(ctx context.Context, t *Target, s *survey) []Verdict {
	var rules []Rule
	for _, rule := range plan.Rules {
		if rule.Settings.Has(s.setting) {
			rules = append(rules, rule)
		}
	}
	verdicts := make([]Verdict, len(rules))
	done := make([]chan struct{}, len(rules))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var others sync.RWMutex // held by rules that are not alone for reading
	slots := make(chan struct{}, plan.Parallel)
	go func() {
		for i, rule := range rules {
			slots <- struct{}{}
			go func() {
				defer func() { <-slots; close(done[i]) }()
				if rule.Alone {
					others.Lock()
					defer others.Unlock()
				} else {
					others.RLock()
					defer others.RUnlock()
				}
				if ctx.Err() != nil {
					verdicts[i] = Verdict{Rule: rule, Setting: s.setting, Status: Error, Reason: "the check was ended"}
					return
				}
				verdicts[i] = judge(ctx, t, s, rule)
			}()
		}
	}()
	for i := range rules {
		<-done[i]
		if plan.Report != nil {
			plan.Report(verdicts[i])
		}
	}
	return verdicts
}
