package main

import (
	"context"
	"fmt"
	"strings"
)

// compare checks the server's word against the database.
func (t *story) compare(ctx context.Context, report *Report) error {
	status, err := t.db.status(ctx, t.operation)
	if err == nil {
		t.check("the server's reports equal the database", report.Status == *status, many(len(t.stops)+1, "report", "reports"))
	}
	return err
}

func (t *story) check(claim string, holds bool, detail string) {
	f := finding{claim: claim, detail: detail}
	if !holds {
		f.wrong = 1
	}
	t.checks = append(t.checks, f)
}

// prove prints a line for each invariant; one that does not hold ends the
// program with status 1.
func (t *story) prove(ctx context.Context) (int, error) {
	t.screen.heading("Proof, over " + t.reach.name)
	findings, err := t.db.audit(ctx, true)
	if err != nil {
		return exitBroken, err
	}
	silent := finding{claim: "nothing on the wire after the cancel", detail: many(len(t.stops), "call", "calls") + " cancelled"}
	for _, s := range t.stops {
		silent.wrong += t.link.tap.silence(s.token, s.record).after
	}
	findings = append(findings, silent)
	return t.verdicts(append(findings, summarized(t.checks)...)), nil
}

// auditBetween checks what holds at every moment.
func (t *story) auditBetween(ctx context.Context) error {
	findings, err := t.db.audit(ctx, false)
	for _, f := range findings {
		if !f.holds() { // one that holds is worth no line before the end
			f.claim = "in between, " + f.claim
			t.checks = append(t.checks, f)
		}
	}
	return err
}

// verdicts prints findings and returns the exit status.
func (t *story) verdicts(findings []finding) int {
	status := exitOK
	for _, f := range findings {
		detail := f.detail
		if !f.holds() {
			status = exitBroken
			detail = strings.TrimSpace(fmt.Sprintf("%s (%d wrong)", detail, f.wrong))
		}
		t.screen.verdict(f.holds(), f.claim, detail+", over "+t.reach.name)
	}
	return status
}

// summarized puts findings with the same claim into one line, with the last detail.
func summarized(findings []finding) []finding {
	var summary []finding
	for _, f := range findings {
		found := false
		for i := range summary {
			if summary[i].claim == f.claim {
				summary[i].wrong += f.wrong
				summary[i].detail = f.detail
				found = true
			}
		}
		if !found {
			summary = append(summary, f)
		}
	}
	return summary
}
