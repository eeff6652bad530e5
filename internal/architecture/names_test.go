package architecture_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The other spelling, in a form that this very file does not contain.
var otherSpelling = regexp.MustCompile(`(?i)cance(led|ling|ler|lable|lation)`)

// Words of others, which stay as they are where we have to repeat them.
var wordsOfOthers = regexp.MustCompile(`\bcontext\.Cance` + `led\b` + // the standard library's name
	`|\bcontext cance` + `led\b` + // and its text
	`|\bcance` + `ling statement due to\b`) // PostgreSQL's error text

// Names that say nothing about what is inside.
var bannedPackages = []string{
	"util", "utils", "common", "helper", "helpers", "misc", "shared", "base",
}

// Identifiers, messages, comments and documents alike.
func TestTextsAreSpelledCancelled(t *testing.T) {
	for _, file := range read(t).texts {
		for number, line := range strings.Split(string(file.text), "\n") {
			if !strings.Contains(line, "ance") && !strings.Contains(line, "ANCE") {
				continue // the pattern is slow, and there are many lines
			}
			line = wordsOfOthers.ReplaceAllString(line, "")
			assert.Falsef(t, otherSpelling.MatchString(line),
				"%s:%d: %s: we say cancelled, cancelling, cancellation", file.path, number+1, strings.TrimSpace(line))
		}
	}
}

func TestFilesAreSpelledCancelled(t *testing.T) {
	for _, file := range read(t).texts {
		assert.Falsef(t, otherSpelling.MatchString(file.path),
			"%s: file names say cancelled, cancelling, cancellation", file.path)
	}
}

func TestSpellingRuleKnowsBothSpellings(t *testing.T) {
	for _, bad := range []string{"Cance" + "led", "isCance" + "led", "Cance" + "lation", "cance" + "ling"} {
		assert.True(t, otherSpelling.MatchString(bad), bad)
	}
	for _, good := range []string{"Cancelled", "cancellation", "Cancelling", "Cancel", "canceller", "Cancels"} {
		assert.False(t, otherSpelling.MatchString(good), good)
	}
	for _, theirs := range []string{"errors.Is(err, context.Cance" + "led)", `"context cance` + `led"`} {
		assert.Truef(t, otherSpelling.MatchString(theirs), "%s is an exception that is not needed", theirs)
		assert.False(t, otherSpelling.MatchString(wordsOfOthers.ReplaceAllString(theirs, "")), theirs)
	}
}

func TestNoPackageIsADrawer(t *testing.T) {
	for _, file := range read(t).files {
		name := strings.TrimSuffix(file.syntax.Name.Name, "_test")
		assert.NotContainsf(t, bannedPackages, name, "%s: package %s does not say what is inside", file.path, name)
		for part := range strings.SplitSeq(file.dir, "/") {
			assert.NotContainsf(t, bannedPackages, part, "%s: folder %s does not say what is inside", file.path, part)
		}
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(file.path), ".go"), "_test")
		assert.Falsef(t, slices.Contains(bannedPackages, stem), "%s: name the file after the noun that it holds", file.path)
	}
}
