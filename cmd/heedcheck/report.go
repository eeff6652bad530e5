package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest"
)

// report is an outcome as programs read it.
type report struct {
	Server   string         `json:"server"`
	Verdicts []reported     `json:"verdicts"`
	Unspoken []unspoken     `json:"unspoken,omitempty"`
	Counts   map[string]int `json:"counts"`
	Seconds  float64        `json:"seconds"`
}

type reported struct {
	Setting     string               `json:"setting"`
	Rule        string               `json:"rule"`
	Explanation string               `json:"explanation"`
	Level       transporttest.Level  `json:"level"`
	Page        string               `json:"page,omitempty"`
	Status      transporttest.Status `json:"status"`
	Reason      string               `json:"reason,omitempty"`
	Evidence    []string             `json:"evidence,omitempty"`
	Seconds     float64              `json:"seconds"`
}

type unspoken struct {
	Setting  string   `json:"setting"`
	Reason   string   `json:"reason"`
	Evidence []string `json:"evidence,omitempty"`
}

func newReport(server string, out transporttest.Outcome, took time.Duration) *report {
	r := &report{Server: server, Counts: map[string]int{}, Seconds: took.Seconds()}
	for status := transporttest.Pass; status <= transporttest.Error; status++ {
		r.Counts[status.String()] = 0
	}
	for _, v := range out.Verdicts {
		r.Counts[v.Status.String()]++
		one := reported{
			Setting: v.Setting.String(), Rule: v.Rule.Name, Explanation: v.Rule.Explanation, Level: v.Rule.Level, Page: v.Rule.Page,
			Status: v.Status, Reason: v.Reason, Seconds: v.Took.Seconds(),
		}
		if v.Status == transporttest.Fail || v.Status == transporttest.Error {
			one.Evidence = v.Evidence()
		}
		r.Verdicts = append(r.Verdicts, one)
	}
	for _, u := range out.Unspoken {
		r.Unspoken = append(r.Unspoken, unspoken{u.Setting.String(), u.Reason, u.Verdict.Evidence()})
	}
	return r
}

// status is the exit status.
func (r *report) status() int {
	switch {
	case len(r.Verdicts) == 0:
		return exitUsage
	case r.Counts["fail"]+r.Counts["error"] > 0:
		return exitFailed
	}
	return exitOK
}

func (r *report) summary() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped, %d errors in %.1fs",
		r.Counts["pass"], r.Counts["fail"], r.Counts["skip"], r.Counts["error"], r.Seconds)
}

func (r *report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// JUnit's elements, as far as readers agree on them.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string    `xml:"name,attr"`
		Class   string    `xml:"classname,attr"`
		Time    string    `xml:"time,attr"`
		Failure *junitEnd `xml:"failure"`
		Error   *junitEnd `xml:"error"`
		Skipped *junitEnd `xml:"skipped"`
	}
	junitEnd struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a suite for each setting. One that could not be tried has one
// case, which is skipped, or is an error if none could be.
func (r *report) writeJUnit(w io.Writer) error {
	var all junitSuites
	for _, v := range r.Verdicts {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != v.Setting {
			all.Suites = append(all.Suites, junitSuite{Name: v.Setting})
		}
		s := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: v.Rule, Class: "heedcheck." + strings.ReplaceAll(v.Setting, "/", "."), Time: fmt.Sprintf("%.3f", v.Seconds)}
		end := &junitEnd{Message: valid(v.Reason), Text: valid(strings.Join(v.Evidence, "\n"))}
		switch v.Status {
		case transporttest.Fail:
			c.Failure = end
			s.Failures++
		case transporttest.Error:
			c.Error = end
			s.Errors++
		case transporttest.Skip:
			c.Skipped = end
			s.Skipped++
		}
		s.Tests++
		s.Cases = append(s.Cases, c)
	}
	for _, u := range r.Unspoken {
		c := junitCase{Name: "survey", Class: "heedcheck." + strings.ReplaceAll(u.Setting, "/", "."), Time: "0"}
		s := junitSuite{Name: u.Setting, Tests: 1}
		end := &junitEnd{Message: valid(u.Reason), Text: valid(strings.Join(u.Evidence, "\n"))}
		if len(r.Verdicts) == 0 {
			c.Error, s.Errors = end, 1
		} else {
			c.Skipped, s.Skipped = end, 1
		}
		s.Cases = []junitCase{c}
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// valid is text with nothing that XML cannot hold.
func valid(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return 0xFFFD
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
