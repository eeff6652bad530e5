package doctest

import (
	"fmt"
	"strings"
)

// A Quotation is a part of a page that claims to be a part of another file.
type Quotation struct {
	Page, Line string // where it stands: the page's path, and a line number
	Source     string // path#region, or path#anchor
	Text       string // what stands there
	start, end int    // of Text in the page
}

// quotation is what a match in a page quotes: from is where its mark begins, and
// the others are bounds of its parts.
func quotation(path string, page []byte, from int, source, text [2]int) Quotation {
	return Quotation{
		Page:   path,
		Line:   fmt.Sprint(strings.Count(string(page[:from]), "\n") + 1),
		Source: string(page[source[0]:source[1]]),
		Text:   string(page[text[0]:text[1]]),
		start:  text[0],
		end:    text[1],
	}
}

// Quoted returns q, for whoever has it as part of something else.
func (q Quotation) Quoted() Quotation { return q }

// In returns the page with another text in the quotation's place. Of several of a
// page the last must be replaced first.
func (q Quotation) In(page []byte, text string) []byte {
	return []byte(string(page[:q.start]) + text + string(page[q.end:]))
}
