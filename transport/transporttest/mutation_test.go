package transporttest_test

import (
	"flag"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is a third of the rules where everything takes several times as long, else all.
func sample(settings transporttest.Setting) []transporttest.Rule {
	var rules []transporttest.Rule
	for i, rule := range transporttest.Rules() {
		if rule.Settings&settings != 0 && (!raceEnabled || *full || i%3 == 0) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// ruleNamed returns a rule.
func ruleNamed(t *testing.T, name string) transporttest.Rule {
	t.Helper()
	rules := transporttest.Rules()
	i := slices.IndexFunc(rules, func(r transporttest.Rule) bool { return r.Name == name })
	require.GreaterOrEqual(t, i, 0, "no rule %s", name)
	return rules[i]
}

// tried is what comes out of a rule for a target.
func tried(t *testing.T, target *transporttest.Target, setting transporttest.Setting, rules ...transporttest.Rule) []transporttest.Verdict {
	t.Helper()
	var out transporttest.Outcome
	synctest.Test(t, func(t *testing.T) {
		out = transporttest.Check(t.Context(), target, transporttest.Plan{Settings: setting, Rules: rules, Parallel: 1})
	})
	for _, u := range out.Unspoken {
		require.Failf(t, "the broken server cannot be tried", "%s: %s", u.Setting, u.Reason)
	}
	return out.Verdicts
}

var full = flag.Bool("full", false, "try every rule on every broken server, which takes minutes")

// others are rules that a mutant must not break: a share of them that differs from mutant to
// mutant, or all. Mutants are tried side by side, so that a rule that counts the
// goroutines of the process cannot be among them.
func others(setting transporttest.Setting, share int, but string) []transporttest.Rule {
	every := 4
	switch {
	case *full:
		every = 1
	case raceEnabled:
		every = 12
	}
	var rules []transporttest.Rule
	for i, rule := range transporttest.Rules() {
		if rule.Settings.Has(setting) && !rule.Alone && rule.Name != but && i%every == share%every {
			rules = append(rules, rule)
		}
	}
	return rules
}

// killed checks that the rule finds the fault, and that no unrelated one does.
func killed(t *testing.T, target *transporttest.Target, setting transporttest.Setting, name string, also []string, share int) {
	t.Helper()
	verdicts := tried(t, target, setting, append(others(setting, share, name), ruleNamed(t, name))...)
	own := verdicts[len(verdicts)-1]
	require.Equal(t, transporttest.Fail, own.Status, "%s does not find the fault: %s %v", name, own.Reason, own.Evidence())
	require.NotEmpty(t, own.Evidence())
	for _, v := range verdicts[:len(verdicts)-1] {
		if slices.Contains(also, v.Rule.Name) {
			continue
		}
		assert.NotContains(t, []transporttest.Status{transporttest.Fail, transporttest.Error}, v.Status,
			"%s fails for a fault that is not its own: %s %v", v.Rule.Name, v.Reason, v.Evidence())
	}
}

// For each rule there is a server that breaks it and nothing else.
func TestEachRuleFindsItsFaultOnStreams(t *testing.T) {
	for i, m := range slices.Concat(mutants(), taskMutants()) {
		t.Run(m.rule+"/"+m.setting.String(), func(t *testing.T) {
			t.Parallel()
			killed(t, inMemory(&m.fault), m.setting, m.rule, m.also, i)
		})
	}
}

// A server that only stands behind a broken one's machinery is not broken.
func TestBrokenWithoutFaultIsGood(t *testing.T) {
	transporttest.Run(t, inMemory(&fault{}), transporttest.Options{
		Settings: transporttest.Streams, Bubble: true, NoSkips: true, Rules: sample(transporttest.Streams),
	})
}

// No rule is without a mutant.
func TestEachRuleHasAMutant(t *testing.T) {
	known := map[string]bool{}
	for _, m := range slices.Concat(mutants(), taskMutants()) {
		known[m.rule] = true
	}
	for _, m := range slices.Concat(httpMutants(), webTaskMutants()) {
		known[m.rule] = true
	}
	for _, rule := range transporttest.Rules() {
		assert.True(t, known[rule.Name], "no server breaks %s", rule.Name)
	}
}
