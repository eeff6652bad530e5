package doctest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Page is what a Markdown page says about itself, and where it leads.
type Page struct {
	// Title and Order are the page's front matter: how it is called in the
	// navigation, and its place among the pages of its folder. "" and 0 without.
	Title string
	Order int
	// Headings are the texts of its headings, without their marks, in order. The
	// first one is the page's own.
	Headings []Heading
	// Links are the targets of its links, as they are written.
	Links []string
}

// Heading is one heading of a page.
type Heading struct {
	Level int // 1 to 6
	Text  string
}

var (
	heading = regexp.MustCompile(`^(#{1,6}) +(.*?) *#*$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("`[^`]*`")
)

// ParsePage reads a page. It returns an error when the front matter does not end, or has an
// order that is no number.
func ParsePage(text []byte) (*Page, error) {
	p := &Page{}
	body := string(text)
	if front, ok := strings.CutPrefix(body, "---\n"); ok {
		var head string
		if head, body, ok = strings.Cut(front, "\n---\n"); !ok {
			return nil, fmt.Errorf("the front matter has no end")
		}
		if err := p.front(head); err != nil {
			return nil, err
		}
	}
	fenced := false
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			p.Headings = append(p.Headings, Heading{Level: len(m[1]), Text: m[2]})
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "code"), -1) {
			p.Links = append(p.Links, m[1])
		}
	}
	return p, nil
}

func (p *Page) front(head string) (err error) {
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch key {
		case "title":
			p.Title = value
		case "order":
			if p.Order, err = strconv.Atoi(value); err != nil {
				return fmt.Errorf("order: %w", err)
			}
		}
	}
	return nil
}

// Anchors are the names under which the page's headings can be linked to. Only those
// are listed that code hosts and the site generator make alike: of headings of ASCII
// letters, digits and single spaces or hyphens, each once in the page.
func (p *Page) Anchors() map[string]bool {
	anchors := map[string]bool{}
	count := map[string]int{}
	for _, h := range p.Headings {
		slug, plain := slugOf(h.Text)
		if count[slug]++; plain {
			anchors[slug] = count[slug] == 1
		}
	}
	return anchors
}

// slugOf makes an anchor of a heading. plain tells whether everybody makes the same.
func slugOf(text string) (slug string, plain bool) {
	plain = true
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-':
			b.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			b.WriteRune(unicode.ToLower(r))
		case r == ' ':
			b.WriteByte('-')
		default:
			plain = false // dropped by one and replaced by the other
		}
	}
	slug = b.String()
	digit := slug != "" && slug[0] >= '0' && slug[0] <= '9' // one puts a mark before it
	return slug, plain && !digit && !strings.Contains(slug, "--")
}
