package doctest_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heedmcp/heed/internal/doctest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const docs = "docs"

// parsed are the repository's pages by their paths below the root, with slashes.
func parsed(t *testing.T) map[string]*doctest.Page {
	t.Helper()
	all := map[string]*doctest.Page{}
	for _, file := range pages(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		rel, err := filepath.Rel(root, file)
		require.NoError(t, err)
		page, err := doctest.ParsePage(text)
		require.NoError(t, err, rel)
		all[filepath.ToSlash(rel)] = page
	}
	return all
}

// inNavigation tells whether a page has a place in the navigation by its front
// matter. Decision records have theirs by the number in their name.
func inNavigation(name string) bool {
	return strings.HasPrefix(name, docs+"/") && !strings.HasPrefix(name, docs+"/decisions/")
}

// What stands in the navigation has a place and a title, which is the page's heading too where
// it is not a folder's first page. Pages of the same order stand by title.
func TestEveryPageHasItsPlaceInTheNavigation(t *testing.T) {
	all := parsed(t)
	for name, page := range all {
		if !inNavigation(name) {
			continue
		}
		assert.NotEmpty(t, page.Title, "%s has no title in its front matter", name)
		assert.Positive(t, page.Order, "%s has no order in its front matter", name)
		titles := 0
		for _, h := range page.Headings {
			if h.Level == 1 {
				titles++
			}
		}
		assert.Equal(t, 1, titles, "%s needs exactly one heading of the first level", name)
		index := path.Dir(name) + "/index.md"
		if name == index {
			assert.Equal(t, 1, page.Order, "%s is the first page of its folder", name)
			continue
		}
		assert.Greater(t, page.Order, 1, "%s stands before the first page of its folder", name)
		assert.Contains(t, all, index, "the folder of %s has no first page", name)
		if assert.NotEmpty(t, page.Headings, name) {
			assert.Equal(t, page.Title, page.Headings[0].Text, "%s has two titles", name)
		}
	}
}

// A link with an anchor leads to a heading, and to the same one on code hosts and on the site.
func TestEveryAnchorIsAHeading(t *testing.T) {
	all := parsed(t)
	for name, page := range all {
		for _, link := range page.Links {
			target, anchor, ok := strings.Cut(link, "#")
			if !ok || strings.Contains(target, "://") {
				continue
			}
			where := name
			if target != "" {
				where = path.Join(path.Dir(name), target)
			}
			to := all[where]
			if !assert.NotNil(t, to, "%s links to %s, which is no page", name, link) {
				continue
			}
			assert.True(t, to.Anchors()[anchor], "%s links to %s, which has no such heading, or one that not everybody names alike", name, link)
		}
	}
}

// The first page of a folder below docs leads to all others, since code hosts show no navigation.
func TestFirstPagesLeadToAllOthers(t *testing.T) {
	all := parsed(t)
	for name := range all {
		folder := path.Dir(name)
		if !strings.HasPrefix(folder, docs+"/") {
			continue
		}
		first := folder + "/index.md"
		if all[first] == nil {
			first = folder + "/README.md"
		}
		if name == first || !assert.NotNil(t, all[first], "%s has no first page", folder) {
			continue
		}
		linked := func(link string) bool {
			target, _, _ := strings.Cut(link, "#")
			return path.Join(folder, target) == name
		}
		assert.True(t, slices.ContainsFunc(all[first].Links, linked), "%s does not lead to %s", first, name)
	}
}

// Links between pages work on code hosts and on the site: they are relative and name the file.
func TestLinksBetweenPagesNameTheFile(t *testing.T) {
	for name, page := range parsed(t) {
		for _, link := range page.Links {
			target, _, _ := strings.Cut(link, "#")
			assert.False(t, strings.HasPrefix(target, "/"), "%s links to %s, which is absolute", name, link)
			if inNavigation(name) && target != "" && !strings.Contains(target, "://") {
				// Pictures are shown in the page, and come along to the site.
				assert.Contains(t, []string{".md", ".svg"}, path.Ext(target), "%s links to %s: what is no page has no place on the site", name, link)
			}
		}
	}
}

func TestPagesAreParsed(t *testing.T) {
	page, err := doctest.ParsePage([]byte("---\ntitle: \"A title\"\norder: 3\n---\n\n# A title\n\n[a](b.md#c-d) and `[x](y)`\n\n" +
		"```sh\n# no heading\n[z](z)\n```\n\n## Two words\n\n## What's this?\n\n### Twice\n\n### Twice\n\n## 1. First\n"))
	require.NoError(t, err)
	assert.Equal(t, "A title", page.Title)
	assert.Equal(t, 3, page.Order)
	assert.Equal(t, []string{"b.md#c-d"}, page.Links)
	assert.Equal(t, doctest.Heading{Level: 2, Text: "Two words"}, page.Headings[1])
	anchors := page.Anchors()
	assert.True(t, anchors["two-words"])
	for _, unsure := range []string{"whats-this", "twice", "1-first", "no-heading", ""} {
		assert.False(t, anchors[unsure], unsure)
	}

	for _, bad := range []string{"---\ntitle: x\n", "---\norder: first\n---\n"} {
		_, err := doctest.ParsePage([]byte(bad))
		assert.Error(t, err, bad)
	}
	page, err = doctest.ParsePage([]byte("text only\n"))
	require.NoError(t, err)
	assert.Empty(t, page.Links)
	assert.Empty(t, page.Headings)
	assert.Zero(t, page.Order)
}
