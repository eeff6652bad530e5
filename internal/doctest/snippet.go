package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Snippet is a fence in a page that claims to be a region of a source file.
type Snippet struct{ Quotation }

var marked = regexp.MustCompile("(?m)^<!-- snippet: (\\S+) -->\n+```[a-z]*\n((?s:.*?))^```")

// Snippets returns the marked fences of a page.
func Snippets(path string, page []byte) []Snippet {
	var all []Snippet
	for _, m := range marked.FindAllSubmatchIndex(page, -1) {
		all = append(all, Snippet{quotation(path, page, m[0], [2]int(m[2:4]), [2]int(m[4:6]))})
	}
	return all
}

// Want returns what the snippet's source has in its place, below root.
func (s Snippet) Want(root string) (string, error) {
	file, region, _ := strings.Cut(s.Source, "#")
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return "", err
	}
	if region == "" {
		return string(raw), nil
	}
	return cut(string(raw), region)
}

// cut returns a region without its marks and common indentation.
func cut(source, region string) (string, error) {
	var lines []string
	inside, found := false, false
	for line := range strings.Lines(source) {
		switch text := strings.TrimSpace(line); {
		case text == "// region "+region:
			inside, found = true, true
		case inside && text == "// endregion":
			inside = false
		case inside:
			lines = append(lines, line)
		}
	}
	if !found {
		return "", fmt.Errorf("no region %q", region)
	}
	indent := -1
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		n := len(l) - len(strings.TrimLeft(l, "\t"))
		if indent < 0 || n < indent {
			indent = n
		}
	}
	var b strings.Builder
	for _, l := range lines {
		if len(l) > indent && indent > 0 {
			l = l[indent:]
		}
		b.WriteString(l)
	}
	return strings.Trim(b.String(), "\n") + "\n", nil
}
