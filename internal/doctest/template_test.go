package doctest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var heredoc = regexp.MustCompile(`(?ms)^cat >"\$page" <<END\n(.*?)^END$`)

// The page that bench/compare.sh writes has the words that the script has now.
func TestTheComparisonIsWhatItsScriptWrites(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "bench/compare.sh"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs/comparison.md"))
	require.NoError(t, err)
	template := heredoc.FindSubmatch(script)
	require.NotNil(t, template)
	escaped := strings.NewReplacer(`\\`, `\`, "\\`", "`", `\$`, "\x00").Replace(string(template[1]))
	rest, lines := string(page), 0
	for line := range strings.Lines(escaped) {
		if strings.Contains(line, "$") {
			continue // the run fills it in
		}
		line = strings.ReplaceAll(line, "\x00", "$")
		_, after, found := strings.Cut(rest, line)
		require.Truef(t, found, "the page lacks, or has elsewhere: %s", line)
		rest, lines = after, lines+1
	}
	require.Greater(t, lines, 30)
}
