package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is not a terminal gets plain lines: no colours, nothing redrawn, and a
// bar as one line for each tenth.
func TestPlainOutput(t *testing.T) {
	var out strings.Builder
	s := newScreen(&out, false)
	s.heading("A job board")
	for i := 0; i <= 40; i++ {
		s.bar(float64(i), 40, "filling it")
	}
	s.say("Done with %d.", 40)
	s.stopped("Stop, at once")
	s.layers([]layer{{"caller", []string{"one", strings.Repeat("long ", 20)}}, {"wire", []string{"two"}}})
	s.verdict(true, "every posting was closed once", "400 closed")
	s.verdict(false, "the ledger equals the rows", "16 batches (2 wrong)")
	require.Equal(t, `
A job board
   10%  filling it
   20%  filling it
   30%  filling it
   40%  filling it
   50%  filling it
   60%  filling it
   70%  filling it
   80%  filling it
   90%  filling it
  100%  filling it
  Done with 40.
  ■ Stop, at once

  layer      what it knows
  caller     one
             long long long long long long long long long long long long long
               long long long long long long long
  wire       two

  ✓ every posting was closed once                       400 closed
  ✗ the ledger equals the rows                          16 batches (2 wrong)
`, out.String())
}

func TestQuietOutput(t *testing.T) {
	var out strings.Builder
	s := newScreen(&out, true)
	s.heading("A job board")
	s.bar(40, 40, "filling it")
	s.say("Done.")
	s.stopped("Stop")
	s.layers([]layer{{"caller", []string{"one"}}})
	s.verdict(true, "every posting was closed once", "400 closed")
	require.Equal(t, "  ✓ every posting was closed once                       400 closed\n", out.String())
}

// A terminal's bar is redrawn in its line and never wraps.
func TestLiveOutput(t *testing.T) {
	var out strings.Builder
	s := &screen{w: &out, live: true, width: 60}
	s.bar(0, 40, "starting")
	s.bar(20, 40, "batch 2 of 4 "+strings.Repeat("x", 100))
	s.say("Done.")
	lines := strings.Split(out.String(), "\r\x1b[K")
	require.Len(t, lines, 3)
	require.Equal(t, "  "+strings.Repeat("░", 30)+"   0%  starting", lines[1])
	bar, rest, _ := strings.Cut(lines[2], "\n")
	require.Equal(t, "  "+strings.Repeat("█", 15)+strings.Repeat("░", 15)+"  50%  batch 2 of 4 xxxxxx…", bar)
	require.LessOrEqual(t, len([]rune(bar)), s.width)
	require.Equal(t, "  Done.\n", rest)
	require.NotContains(t, out.String(), "\x1b[3", "colours are another matter")

	out.Reset()
	s.colour = true
	s.verdict(true, "claim", "detail")
	require.Contains(t, out.String(), "\x1b[32m✓\x1b[0m claim")
}

func TestWords(t *testing.T) {
	require.Equal(t, "7", thousands(7))
	require.Equal(t, "999", thousands(999))
	require.Equal(t, "1,000", thousands(1000))
	require.Equal(t, "12,345,678", thousands(12345678))
	require.Equal(t, "1 call", many(1, "call", "calls"))
	require.Equal(t, "1,200 calls", many(1200, "call", "calls"))
	require.Equal(t, "120µs", brief(123*time.Microsecond))
	require.Equal(t, "1.2ms", brief(1234*time.Microsecond))
	require.Equal(t, "1.234s", brief(1234*time.Millisecond))
	require.Equal(t, "1m", short(time.Minute))
	require.Equal(t, "0s", short(0))
	require.Equal(t, "10s", short(10*time.Second))
	require.Equal(t, "600ms", short(600*time.Millisecond))
	require.Equal(t, []string{""}, wrap("", 10))
	require.Equal(t, []string{"a bc", "defgh", "i"}, wrap("a  bc defgh i", 5))
}
