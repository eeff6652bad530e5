package transporttest

import (
	"testing"
	"testing/synctest"
)

// Options say how [Run] tries a target.
type Options struct {
	// Settings are those that the transport serves. It is an error if one of
	// them cannot be tried.
	Settings Setting
	// Bubble runs each rule in a testing/synctest bubble, where waiting takes no time. Dial
	// and Open must then work in memory.
	Bubble bool
	// NoSkips makes a rule that cannot be judged an error. Without it the subtest is skipped.
	NoSkips bool
	// Rules are those to try. nil: all.
	Rules []Rule
}

// Run tries a target, each rule in each setting as a subtest. The server should have
// the fixtures of package fixture; without them most rules cannot be judged.
func Run(t *testing.T, target *Target, o Options) {
	if o.Rules == nil {
		o.Rules = Rules()
	}
	for _, setting := range o.Settings.Each() {
		t.Run(setting.String(), func(t *testing.T) {
			var s *survey
			o.bubble(t, func(t *testing.T) {
				var err error
				if s, err = look(t.Context(), target, setting); err != nil {
					t.Fatalf("the server cannot be tried: %v", err)
				}
			})
			for _, rule := range o.Rules {
				if rule.Settings.Has(setting) {
					t.Run(rule.Name, func(t *testing.T) {
						o.bubble(t, func(t *testing.T) { o.show(t, judge(t.Context(), target, s, rule)) })
					})
				}
			}
		})
	}
}

func (o Options) bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if o.Bubble {
		synctest.Test(t, f)
		return
	}
	f(t)
}

// show makes a verdict the test's.
func (o Options) show(t *testing.T, v Verdict) {
	t.Helper()
	if v.Status == Pass {
		return
	}
	for _, line := range v.Evidence() {
		t.Log(line)
	}
	switch {
	case v.Status == Skip && !o.NoSkips:
		t.Skip(v.Reason)
	case v.Status == Skip:
		t.Fatalf("cannot be judged: %s", v.Reason)
	default:
		t.Fatalf("%s (%s): %s", v.Status, v.Rule.Explanation, v.Reason)
	}
}
