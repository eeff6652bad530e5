package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// A screen is where the story is told. On a terminal it redraws progress bars
// in place and uses colours, unless NO_COLOR is set; anywhere else it prints
// plain lines. It belongs to one goroutine.
type screen struct {
	w      io.Writer
	live   bool // a terminal: lines can be redrawn
	colour bool
	quiet  bool // only verdicts
	width  int

	drawn bool // a bar is on the current line
	tenth int  // plain output: the last tenth of the bar that was printed
}

func newScreen(w io.Writer, quiet bool) *screen {
	s := &screen{w: w, quiet: quiet, width: 80}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		s.live = true
		s.colour = os.Getenv("NO_COLOR") == ""
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width >= 40 {
			s.width = min(width, 110)
		}
	}
	return s
}

// style is an ANSI colour.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func (s *screen) paint(as style, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// heading begins a part of the story.
func (s *screen) heading(text string) {
	if s.quiet {
		return
	}
	s.endBar()
	fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, text))
}

// say prints one paragraph, wrapped.
func (s *screen) say(format string, args ...any) {
	if s.quiet {
		return
	}
	s.endBar()
	for _, line := range wrap(fmt.Sprintf(format, args...), s.width-2) {
		fmt.Fprintln(s.w, "  "+line)
	}
}

// stopped says that Stop was pressed.
func (s *screen) stopped(text string) {
	if s.quiet {
		return
	}
	s.endBar()
	fmt.Fprintf(s.w, "  %s %s\n", s.paint(red, "■"), s.paint(bold, text))
}

// bar draws how far something is, over the bar before it.
func (s *screen) bar(done, total float64, text string) {
	if s.quiet || total <= 0 {
		return
	}
	share := min(max(done/total, 0), 1)
	if !s.live {
		if tenth := int(share * 10); tenth > s.tenth {
			s.tenth = tenth
			fmt.Fprintf(s.w, "  %3.0f%%  %s\n", share*100, text)
		}
		return
	}
	cells := min(40, s.width/2)
	full := int(share * float64(cells))
	line := fmt.Sprintf("%s%s %3.0f%%  ",
		s.paint(cyan, strings.Repeat("█", full)), s.paint(dim, strings.Repeat("░", cells-full)), share*100)
	fmt.Fprintf(s.w, "\r\x1b[K  %s%s", line, clip(text, s.width-cells-10))
	s.drawn = true
}

// endBar leaves the bar as it is and goes to the next line.
func (s *screen) endBar() {
	if s.drawn {
		fmt.Fprintln(s.w)
	}
	s.drawn, s.tenth = false, 0
}

// verdict prints one thing that was proved, or refuted.
func (s *screen) verdict(holds bool, claim, detail string) {
	s.endBar()
	mark := s.paint(green, "✓")
	if !holds {
		mark = s.paint(red, "✗")
	}
	fmt.Fprintf(s.w, "  %s %s  %s\n", mark, pad(claim, 50), s.paint(dim, detail))
}

// wrap breaks text into lines of at most width runes, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= max(width, 1) {
		return text
	}
	return string(runes[:max(width, 1)-1]) + "…"
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// many is a number with its noun.
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + more
}

// brief is a duration with as many digits as a reader wants.
func brief(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 100*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
