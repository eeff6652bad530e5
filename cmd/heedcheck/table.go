package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedmcp/heed/transport/transporttest"
)

// tableFormats write the reports of several servers as one table.
var tableFormats = map[string]func(io.Writer, []transporttest.Rule, []*report) error{
	"text": writeText, "markdown": writeMarkdown, "page": writePage, "json": writeReports,
}

// cell is what came out of a rule for a server, over all settings.
type cell struct{ pass, fail, skip, lost int }

func (r *report) cell(rule string) cell {
	var c cell
	for _, v := range r.Verdicts {
		if v.Rule != rule {
			continue
		}
		switch v.Status {
		case transporttest.Pass:
			c.pass++
		case transporttest.Skip:
			c.skip++
		case transporttest.Fail:
			c.fail++
		default:
			c.lost++ // it could not be found out, which is not the server's fault for sure
		}
	}
	return c
}

// String says in how many of the settings that could be judged the rule is kept.
func (c cell) String() string {
	switch {
	case c == cell{}:
		return "–"
	case c.fail == 0 && c.pass == 0 && c.lost > 0:
		return "not tried"
	case c.fail == 0 && c.pass == 0:
		return "not judged"
	case c.fail == 0:
		return "yes"
	case c.pass == 0:
		return "no"
	}
	return fmt.Sprintf("no in %d of %d", c.fail, c.fail+c.pass)
}

// rows are the table's, the head first.
func rows(rules []transporttest.Rule, reports []*report) [][]string {
	head := []string{"rule", "level"}
	for _, r := range reports {
		head = append(head, r.Server)
	}
	all := [][]string{head}
	for _, rule := range rules {
		row := []string{rule.Name, rule.Level.String()}
		for _, r := range reports {
			row = append(row, r.cell(rule.Name).String())
		}
		all = append(all, row)
	}
	passed := []string{"kept / broken / not judged", ""}
	for _, r := range reports {
		passed = append(passed, fmt.Sprintf("%d / %d / %d", r.Counts["pass"], r.Counts["fail"], r.Counts["skip"]+r.Counts["error"]))
	}
	return append(all, passed)
}

// notes are the reasons of what failed, and what was not spoken.
func notes(reports []*report) []string {
	var all []string
	for _, r := range reports {
		for _, v := range r.Verdicts {
			if v.Status == transporttest.Fail || v.Status == transporttest.Error {
				all = append(all, fmt.Sprintf("%s, %s, %s: %s", r.Server, v.Rule, v.Setting, v.Reason))
			}
		}
		for _, u := range r.Unspoken {
			all = append(all, fmt.Sprintf("%s does not serve %s: %s", r.Server, u.Setting, u.Reason))
		}
	}
	return all
}

func writeText(w io.Writer, rules []transporttest.Rule, reports []*report) error {
	all := rows(rules, reports)
	widths := make([]int, len(all[0]))
	for _, row := range all {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	for _, row := range all {
		for i, text := range row {
			b.WriteString(text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, note := range notes(reports) {
		b.WriteString(note + "\n")
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

// writeTable writes the table in Markdown.
func writeTable(b *strings.Builder, rules []transporttest.Rule, reports []*report) {
	for i, row := range rows(rules, reports) {
		cells := slices.Clone(row)
		for j := range cells {
			cells[j] = escaped(cells[j])
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
}

func writeMarkdown(w io.Writer, rules []transporttest.Rule, reports []*report) error {
	var b strings.Builder
	writeTable(&b, rules, reports)
	if all := notes(reports); len(all) > 0 {
		b.WriteString("\n")
		for _, note := range all {
			b.WriteString("- " + escaped(note) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escaped is text that means nothing in Markdown.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "\n", " ").Replace(text)
}

func writeReports(w io.Writer, _ []transporttest.Rule, reports []*report) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(reports)
}
