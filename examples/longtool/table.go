package main

import "fmt"

// A layer is one place on the way from the Stop button to the database, and
// what can be known there.
type layer struct {
	name  string
	facts []string
}

// layers prints the layers from the button down, one fact a line.
func (s *screen) layers(of []layer) {
	if s.quiet {
		return
	}
	s.endBar()
	const indent = 11
	fmt.Fprintf(s.w, "\n  %s%s\n", s.paint(dim, pad("layer", indent)), s.paint(dim, "what it knows"))
	for _, l := range of {
		name := l.name
		for _, fact := range l.facts {
			for i, line := range wrap(fact, s.width-indent-2) {
				if i > 0 {
					line = "  " + line
				}
				fmt.Fprintf(s.w, "  %s%s\n", s.paint(bold, pad(name, indent)), line)
				name = ""
			}
		}
	}
	fmt.Fprintln(s.w)
}
