package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// Wrong use is one line on stderr, nothing on stdout, and status 2.
func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{},
		{""},
		{"bogus"},
		{"line\nbreak"},
		{"-x"},
		{"stdio", "-x"},
		{"stdio", "-addr", "127.0.0.1:0"},
		{"stdio", "more"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), args, &stdout, &stderr)
			assert.Equal(t, exitUsage, status)
			assert.Empty(t, stdout.String())
			assert.Regexp(t, `\Aeverything: [^\n]+\n\z`, stderr.String())
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"help"}, {"stdio", "-h"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitOK, run(t.Context(), args, &stdout, &stderr), "%q", args)
		assert.Equal(t, usage, stdout.String())
		assert.Empty(t, stderr.String())
	}
}
