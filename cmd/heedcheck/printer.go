package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest"
)

// printer prints an outcome as people read it, a verdict a line. One goroutine uses
// it at a time.
type printer struct {
	w       io.Writer
	verbose bool
	setting transporttest.Setting // of the last verdict
}

var words = map[transporttest.Status]string{
	transporttest.Pass: "pass", transporttest.Fail: "FAIL", transporttest.Skip: "skip", transporttest.Error: "ERROR",
}

func (p *printer) verdict(v transporttest.Verdict) {
	if v.Setting != p.setting {
		p.setting = v.Setting
		fmt.Fprintf(p.w, "%s\n", v.Setting)
	}
	line := fmt.Sprintf("  %-5s  %-24s  %-6s  %6s", words[v.Status], v.Rule.Name, v.Rule.Level, rounded(v.Took))
	switch v.Status {
	case transporttest.Skip:
		line += "  " + v.Reason
	case transporttest.Fail, transporttest.Error:
		line += "  " + v.Rule.Explanation
	}
	fmt.Fprintln(p.w, strings.TrimRight(line, " "))
	bad := v.Status == transporttest.Fail || v.Status == transporttest.Error
	if bad {
		fmt.Fprintf(p.w, "         %s\n", v.Reason)
		if v.Rule.Page != "" {
			fmt.Fprintf(p.w, "         specification: %s\n", v.Rule.Page)
		}
	}
	switch {
	case p.verbose:
		for _, e := range v.Wire {
			fmt.Fprintf(p.w, "         %s\n", e)
		}
	case bad:
		p.evidence(v)
	}
}

func (p *printer) evidence(v transporttest.Verdict) {
	for _, line := range v.Evidence() {
		fmt.Fprintf(p.w, "         %s\n", line)
	}
}

func rounded(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// end prints what could not be tried, and the summary.
func (p *printer) end(out transporttest.Outcome, r *report) {
	for _, u := range out.Unspoken {
		fmt.Fprintf(p.w, "%s\n  none   %s\n", u.Setting, u.Reason)
		if len(out.Verdicts) == 0 || p.verbose {
			p.evidence(u.Verdict)
		}
	}
	if len(out.Verdicts) == 0 {
		fmt.Fprintln(p.w, "the server could not be tried")
		return
	}
	fmt.Fprintln(p.w, r.summary())
}

// list prints the rules.
func list(w io.Writer, rules []transporttest.Rule) {
	for _, rule := range rules {
		page := rule.Page
		if page == "" {
			page = "–"
		}
		fmt.Fprintf(w, "%s  %s  %s\n    %s\n    in: %s\n", rule.Name, rule.Level, page, rule.Explanation, rule.Settings)
		for _, need := range rule.Needs {
			fmt.Fprintf(w, "    needs: %s\n", need)
		}
	}
}
