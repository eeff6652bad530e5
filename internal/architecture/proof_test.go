package architecture_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Pages that prove what they promise by naming tests.
var provingPages = []string{"docs/security.md", "docs/reliability.md"}

var namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)`")

// A promise whose test is gone is one that nobody keeps.
func TestTestsThatPagesNameExist(t *testing.T) {
	tree := read(t)
	tests := map[string]bool{}
	for _, file := range tree.files {
		if !file.isTest {
			continue
		}
		for _, function := range functions(file.syntax) {
			tests[function.Name.Name] = true
		}
	}
	found := 0
	for _, file := range tree.texts {
		for _, page := range provingPages {
			if file.path != page {
				continue
			}
			found++
			names := namedTest.FindAllStringSubmatch(string(file.text), -1)
			assert.NotEmpty(t, names, page)
			for _, name := range names {
				assert.Truef(t, tests[name[1]], "%s names %s, which does not exist", page, name[1])
			}
		}
	}
	require.Equal(t, len(provingPages), found, strings.Join(provingPages, ", "))
}
