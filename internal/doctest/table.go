package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Table in a page claims to be some rows of another page's table: of the first one under a heading.
type Table struct {
	Quotation
	Rows []string // first cells of the rows that are quoted; none: every row
}

var quoted = regexp.MustCompile(`(?m)^<!-- table: (\S+)\s((?s:.*?))-->\n+((?:\|.*\n)*)`)

// Tables returns the marked tables of a page.
func Tables(path string, page []byte) []Table {
	var all []Table
	for _, m := range quoted.FindAllSubmatchIndex(page, -1) {
		t := Table{Quotation: quotation(path, page, m[0], [2]int(m[2:4]), [2]int(m[6:8]))}
		for row := range strings.Lines(string(page[m[4]:m[5]])) {
			if row = strings.TrimSpace(row); row != "" {
				t.Rows = append(t.Rows, row)
			}
		}
		all = append(all, t)
	}
	return all
}

// In is Quotation.In for a table that may not be there yet: what follows its mark then stands apart.
func (t Table) In(page []byte, text string) []byte {
	if t.Text == "" {
		text += "\n"
	}
	return t.Quotation.In(page, text)
}

// Want returns what the other page, below root, has in the table's place: the head of the
// first table under the heading, and the rows that are quoted, in the order of the quotation.
// It returns an error when there is no such table, or one of the rows is not in it.
func (t Table) Want(root string) (string, error) {
	file, anchor, _ := strings.Cut(t.Source, "#")
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return "", err
	}
	lines := tableUnder(string(raw), anchor)
	if len(lines) < 3 {
		return "", fmt.Errorf("no table under %q", anchor)
	}
	want := strings.Join(lines[:2], "")
	if len(t.Rows) == 0 {
		return strings.Join(lines, ""), nil
	}
	for _, name := range t.Rows {
		found := ""
		for _, line := range lines[2:] {
			if strings.HasPrefix(line, "| "+name+" |") {
				found = line
			}
		}
		if found == "" {
			return "", fmt.Errorf("no row %q under %q", name, anchor)
		}
		want += found
	}
	return want, nil
}

// tableUnder returns the lines of the first table between a heading and the next.
func tableUnder(page, anchor string) []string {
	var lines []string
	inside := false
	for line := range strings.Lines(page) {
		if m := heading.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			slug, _ := slugOf(m[2])
			inside = slug == anchor
			continue
		}
		switch isRow := strings.HasPrefix(line, "|"); {
		case inside && isRow:
			lines = append(lines, line)
		case len(lines) > 0:
			return lines
		}
	}
	return lines
}
