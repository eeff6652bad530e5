package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heedmcp/heed/transport/transporttest"
)

// writePage writes the table, why rules are broken, and what they mean: the parts of a page of
// documentation that come from a run.
func writePage(w io.Writer, rules []transporttest.Rule, reports []*report) error {
	var b strings.Builder
	b.WriteString("## The table\n\n")
	writeTable(&b, rules, reports)
	b.WriteString("\n## What is broken, and how\n")
	for _, r := range reports {
		fmt.Fprintf(&b, "\n### %s\n\n", escaped(r.Server))
		faults := r.faults()
		for _, f := range faults {
			fmt.Fprintf(&b, "- **%s** (%s): %s\n", escaped(f.rule), strings.Join(f.settings, ", "), escaped(f.reason))
		}
		if len(faults) == 0 {
			b.WriteString("- Nothing.\n")
		}
		for _, u := range r.Unspoken {
			fmt.Fprintf(&b, "- Not served: %s (%s).\n", u.Setting, escaped(u.Reason))
		}
	}
	b.WriteString("\n## What could not be judged\n\n")
	b.WriteString("A rule that needs something which the server does not have, or shows to nobody, is not judged:\n\n")
	for _, line := range unjudged(reports) {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("\n## What the rules mean\n\n")
	b.WriteString("| rule | level | specification | a server keeps it when |\n|---|---|---|---|\n")
	for _, rule := range rules {
		page := rule.Page
		if page == "" {
			page = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", escaped(rule.Name), rule.Level, escaped(page), escaped(rule.Explanation))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fault is a broken rule, with the settings in which it is broken in the same way.
type fault struct {
	rule     string
	reason   string
	settings []string
}

// faults are the broken rules of a report, in their order.
func (r *report) faults() []fault {
	var all []fault
	for _, v := range r.Verdicts {
		if v.Status != transporttest.Fail && v.Status != transporttest.Error {
			continue
		}
		reason := settled(v.Reason)
		if v.Status == transporttest.Error {
			reason = "could not be tried: " + reason
		}
		all = merged(all, fault{v.Rule, reason, []string{v.Setting}})
	}
	return all
}

func merged(all []fault, f fault) []fault {
	for i := range all {
		if all[i].rule == f.rule && all[i].reason == f.reason {
			all[i].settings = append(all[i].settings, f.settings...)
			return all
		}
	}
	return append(all, f)
}

// settled is a reason that does not get longer than a few lines.
func settled(reason string) string {
	const most = 300
	if runes := []rune(reason); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return reason
}

// unjudged are the reasons why rules were not judged, each with the rules and the servers.
func unjudged(reports []*report) []string {
	var order []string // reasons
	rules, servers := map[string][]string{}, map[string][]string{}
	for _, r := range reports {
		for _, v := range r.Verdicts {
			if v.Status != transporttest.Skip {
				continue
			}
			why := settled(v.Reason)
			if rules[why] == nil {
				order = append(order, why)
			}
			if !slices.Contains(rules[why], v.Rule) {
				rules[why] = append(rules[why], v.Rule)
			}
			if !slices.Contains(servers[why], r.Server) {
				servers[why] = append(servers[why], r.Server)
			}
		}
	}
	var lines []string
	for _, why := range order {
		who := strings.Join(servers[why], ", ")
		if len(servers[why]) == len(reports) && len(reports) > 1 {
			who = "all"
		}
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", escaped(who), escaped(why), strings.Join(rules[why], ", ")))
	}
	return lines
}
