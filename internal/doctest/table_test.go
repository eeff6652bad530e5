package doctest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heedmcp/heed/internal/doctest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryQuotedTableIsItsSource(t *testing.T) { requireInStep(t, doctest.Tables) }

func TestTablesAreQuoted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.md"), []byte("# A\n\n| no | 0 |\n\n## The table\n\ntext\n\n"+
		"| name | n |\n|---|---|\n| one, two | 1 |\n| three | 3 |\n| four | 4 |\n\n| other |\n"), 0o600))

	page := []byte("text\n\n<!-- table: a.md#the-table\nfour\none, two\n-->\n\n| old | 1 |\n\nmore\n\n<!-- table: a.md#the-table -->\n")
	found := doctest.Tables("p.md", page)
	require.Len(t, found, 2)
	assert.Equal(t, "3", found[0].Line)
	assert.Equal(t, []string{"four", "one, two"}, found[0].Rows)
	assert.Equal(t, "| old | 1 |\n", found[0].Text)
	want, err := found[0].Want(dir)
	require.NoError(t, err)
	assert.Equal(t, "| name | n |\n|---|---|\n| four | 4 |\n| one, two | 1 |\n", want)
	assert.Equal(t, strings.Replace(string(page), "| old | 1 |\n", want, 1), string(found[0].In(page, want)))

	want, err = found[1].Want(dir)
	require.NoError(t, err)
	assert.Equal(t, "| name | n |\n|---|---|\n| one, two | 1 |\n| three | 3 |\n| four | 4 |\n", want, "all rows")

	assert.Equal(t, string(page)+want+"\n", string(found[1].In(page, want)))

	found[0].Rows = []string{"five"}
	_, err = found[0].Want(dir)
	assert.ErrorContains(t, err, "five")
	found[0].Source = "a.md#a"
	_, err = found[0].Want(dir)
	assert.ErrorContains(t, err, "no table", "one line is none")
	found[0].Source = "b.md#a"
	_, err = found[0].Want(dir)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
