package architecture_test

import (
	"bytes"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// bannedText is what no file of the repository says. Patterns are put together
// from parts, so that this file passes its own test.
var bannedText = []struct {
	name    string
	needs   []string // what a match contains one of: patterns are slow, and files many
	pattern *regexp.Regexp
	bad     string // an example that the pattern finds
	good    string // a near miss that it leaves alone
	why     string
}{
	{
		name:    "open ends",
		needs:   []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"},
		pattern: regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`),
		bad:     "// TO" + "DO: later",
		good:    "context.TO" + "DO2, a hacker's XXXL",
		why:     "finish it, or write an issue",
	},
	{
		name:    "paths of one machine",
		needs:   []string{"/wo" + "rk/", "/ro" + "ot/", "/t" + "mp/", "/ho" + "me/", "/Use" + "rs/"},
		pattern: regexp.MustCompile("(^|[\"'`\\s(=:,])/(wo" + "rk|ro" + "ot|t" + "mp|ho" + "me|Use" + "rs)/"),
		bad:     `dir := "/t` + `mp/x"`,
		good:    "https://example.com/t" + "mp/x, a ro" + "ot/child",
		why:     "nobody else has that folder; use t.TempDir, os.MkdirTemp or a relative path",
	},
	{
		name:    "package registries",
		needs:   []string{"npm" + "js.org", "golang.org"},
		pattern: regexp.MustCompile(`(regis` + `try\.npmjs|pro` + `xy\.golang|su` + `m\.golang)\.org`),
		bad:     "https://regis" + "try.npmjs.org/x",
		good:    "https://www.npmjs.com/package/x",
		why:     "where packages come from is a matter of the machine that builds",
	},
}

func TestNoFileSaysWhatIsBanned(t *testing.T) {
	for _, file := range read(t).texts {
		for _, ban := range bannedText {
			if !containsAny(file.text, ban.needs) {
				continue
			}
			at := ban.pattern.FindIndex(file.text)
			if at == nil {
				continue
			}
			line := 1 + bytes.Count(file.text[:at[0]], []byte("\n"))
			assert.Failf(t, ban.name, "%s:%d: %q: %s", file.path, line, file.text[at[0]:at[1]], ban.why)
		}
	}
}

func TestBannedTextIsFound(t *testing.T) {
	for _, ban := range bannedText {
		assert.Regexp(t, ban.pattern, ban.bad, ban.name)
		assert.NotRegexp(t, ban.pattern, ban.good, ban.name)
		assert.True(t, containsAny([]byte(ban.bad), ban.needs), ban.name)
		for _, need := range ban.needs {
			assert.NotEmptyf(t, need, "%s: everything contains nothing", ban.name)
		}
	}
}

func containsAny(text []byte, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return bytes.Contains(text, []byte(part)) })
}
