package doctest_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heedmcp/heed/internal/doctest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the snippets in the pages from their sources")

const root = "../.."

// pages lists the repository's Markdown files.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func TestEverySnippetIsItsSource(t *testing.T) { requireInStep(t, doctest.Snippets) }

// quoting is a snippet or a table.
type quoting interface {
	Quoted() doctest.Quotation
	Want(root string) (string, error)
	In(page []byte, text string) []byte
}

// requireInStep compares all that pages quote with its source, or rewrites it.
func requireInStep[Q quoting](t *testing.T, of func(path string, page []byte) []Q) {
	for _, path := range pages(t) {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		updated := page
		for _, q := range slices.Backward(of(path, page)) {
			has := q.Quoted()
			want, err := q.Want(root)
			if !assert.NoError(t, err, "%s:%s", has.Page, has.Line) {
				continue
			}
			if *update {
				updated = q.In(updated, want)
				continue
			}
			assert.Equal(t, want, has.Text, "%s:%s is not what %s has; run with -update", has.Page, has.Line, has.Source)
		}
		if *update && string(updated) != string(page) {
			require.NoError(t, os.WriteFile(path, updated, 0o644))
		}
	}
}

// TestEveryGoFenceHasASource holds pages to the rule that code in them is compiled.
func TestEveryGoFenceHasASource(t *testing.T) {
	fence := regexp.MustCompile("(?m)^```go$")
	for _, path := range pages(t) {
		if strings.Contains(path, "decisions") {
			continue // records show what was weighed, also what was not built
		}
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, len(fence.FindAll(page, -1)), len(doctest.Snippets(path, page)),
			"%s has Go code without a snippet mark", path)
	}
}

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range pages(t) {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range link.FindAllSubmatch(page, -1) {
			target, _, _ := strings.Cut(string(m[1]), "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(path), target))
			assert.NoError(t, err, "%s links to %s", path, target)
		}
	}
}

func TestSnippetsAreFoundAndCut(t *testing.T) {
	page := []byte("text\n\n<!-- snippet: a.go#r -->\n```go\nx := 1\n```\n")
	found := doctest.Snippets("p.md", page)
	require.Len(t, found, 1)
	assert.Equal(t, "a.go#r", found[0].Source)
	assert.Equal(t, "x := 1\n", found[0].Text)
	assert.Equal(t, "3", found[0].Line)
	assert.Equal(t, strings.Replace(string(page), "x := 1", "y := 2", 1), string(found[0].In(page, "y := 2\n")))

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"),
		[]byte("package a\n\nfunc f() {\n\t// region r\n\tx := 1\n\tif x > 0 {\n\t\tx++\n\t}\n\t// endregion\n}\n"), 0o600))
	want, err := found[0].Want(dir)
	require.NoError(t, err)
	assert.Equal(t, "x := 1\nif x > 0 {\n\tx++\n}\n", want)

	found[0].Source = "a.go#other"
	_, err = found[0].Want(dir)
	assert.ErrorContains(t, err, "other")
}
