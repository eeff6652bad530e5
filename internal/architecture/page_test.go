package architecture_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	architecturePage = "docs/architecture.md"
	importsMark      = "<!-- imports -->\n```text\n"
)

// The list of imports in the page on architecture is what the code has. Packages
// below internal stand beside it, in prose.
func TestTheArchitecturePageShowsTheImports(t *testing.T) {
	tree := read(t)
	at := slices.IndexFunc(tree.texts, func(f textFile) bool { return f.path == architecturePage })
	require.GreaterOrEqual(t, at, 0, architecturePage)
	_, rest, found := strings.Cut(string(tree.texts[at].text), importsMark)
	require.True(t, found, "%s has no list of imports", architecturePage)
	list, _, _ := strings.Cut(rest, "```")

	shown := map[string][]string{}
	for line := range strings.Lines(list) {
		name, targets, ok := strings.Cut(line, "→")
		require.True(t, ok, line)
		shown[strings.TrimSpace(name)] = strings.Split(strings.TrimSpace(targets), ", ")
	}
	require.Contains(t, shown, "server")
	for name, targets := range shown {
		assert.Equal(t, packagesOf(tree, name), targets, "%s: what %s imports", architecturePage, name)
	}
	for _, dir := range tree.dirs() {
		if tree.inLibrary(dir) && !isIn(dir, []string{"internal", "cmd", "examples"}) && strings.Count(dir, "/") < 2 && !strings.HasSuffix(dir, "storetest") {
			assert.Contains(t, shown, dir, "%s does not show %s", architecturePage, dir)
		}
	}
}

// packagesOf lists the packages of this module that a package imports, without the
// module's internal ones.
func packagesOf(t *tree, dir string) []string {
	found := map[string]bool{}
	for _, file := range t.files {
		if file.dir != dir || file.isTest {
			continue
		}
		for _, target := range file.imports {
			inside, ours := strings.CutPrefix(target, modulePath+"/")
			if ours && !within(inside, "internal") {
				found[inside] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
