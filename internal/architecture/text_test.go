package architecture_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

// bannedText is what no file of the repository says. Patterns are put together
// from parts, so that this file passes its own test.
var bannedText = []struct {
	name    string
	pattern *regexp.Regexp
	bad     string // an example that the pattern finds
	good    string // a near miss that it leaves alone
	why     string
}{
	{
		name:    "open ends",
		pattern: regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`),
		bad:     "// TO" + "DO: later",
		good:    "context.TO" + "DO2, a hacker's XXXL",
		why:     "finish it, or write an issue",
	},
	{
		name:    "paths of one machine",
		pattern: regexp.MustCompile("(^|[\"'`\\s(=:,])/(wo" + "rk|ro" + "ot|t" + "mp|ho" + "me|Users)/"),
		bad:     `dir := "/t` + `mp/x"`,
		good:    "https://example.com/t" + "mp/x, a ro" + "ot/child",
		why:     "nobody else has that folder; use t.TempDir, os.MkdirTemp or a relative path",
	},
	{
		name:    "package registries",
		pattern: regexp.MustCompile(`(regis` + `try\.npmjs|pro` + `xy\.golang|su` + `m\.golang)\.org`),
		bad:     "https://regis" + "try.npmjs.org/x",
		good:    "https://www.npmjs.com/package/x",
		why:     "where packages come from is a matter of the machine that builds",
	},
}

func TestNoFileSaysWhatIsBanned(t *testing.T) {
	for _, file := range read(t).texts {
		for _, ban := range bannedText {
			at := ban.pattern.FindIndex(file.text)
			if at == nil {
				continue
			}
			line := 1
			for _, b := range file.text[:at[0]] {
				if b == '\n' {
					line++
				}
			}
			assert.Failf(t, ban.name, "%s:%d: %q: %s", file.path, line, file.text[at[0]:at[1]], ban.why)
		}
	}
}

func TestBannedTextIsFound(t *testing.T) {
	for _, ban := range bannedText {
		assert.Regexp(t, ban.pattern, ban.bad, ban.name)
		assert.NotRegexp(t, ban.pattern, ban.good, ban.name)
	}
}
