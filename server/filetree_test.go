package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree writes files and opens their directory. A secret lies beside it.
func tree(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	outer := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outer, "secret"), []byte("secret"), 0o600))
	dir := filepath.Join(outer, "root")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

func treeServer(t *testing.T, root *os.Root, o *server.FileTreeOptions) *server.Server {
	s := plain(t, &server.Options{PageSize: 2})
	s.MustAddFileTree("file:///tree/", root, o)
	return s
}

var someFiles = map[string]string{
	"a.txt": "text", "b/c.md": "# c", "b/d/e.json": "{}", "b.png": "\x89PNG\r\n\x1a\n\x00", "empty": "",
	"odd name%#?.txt": "odd", ".hidden": "h", ".git/config": "g", "b-1/x": "x", "unknown.zzz9": "words", "z.zzz9": "\xff\xfe",
}

func TestFilesAreRead(t *testing.T) {
	p := newPeer(t, treeServer(t, tree(t, someFiles), nil), peerOptions{})
	for uri, want := range map[string]M{
		"file:///tree/a.txt":                   {"mimeType": "text/plain", "text": "text"},
		"file:///tree/b/c.md":                  {"mimeType": "text/markdown", "text": "# c"},
		"file:///tree/b/d/e.json":              {"mimeType": "application/json", "text": "{}"},
		"file:///tree/b.png":                   {"mimeType": "image/png", "blob": "iVBORw0KGgoA"},
		"file:///tree/empty":                   {"mimeType": "text/plain", "text": ""},
		"file:///tree/odd%20name%25%23%3F.txt": {"mimeType": "text/plain", "text": "odd"},
		"file:///tree/%61.txt":                 {"mimeType": "text/plain", "text": "text"},
		"file:///tree/unknown.zzz9":            {"mimeType": "text/plain", "text": "words"},
		"file:///tree/z.zzz9":                  {"mimeType": "text/plain", "blob": "//4="},
	} {
		want["uri"] = uri
		got := at(t, p.Get("resources/read", M{"uri": uri}), "contents", 0).(M)
		if uri == "file:///tree/z.zzz9" {
			want["mimeType"] = got["mimeType"] // what the standard library makes of two bytes
		}
		assert.Equal(t, want, got)
	}
}

func TestDirectoriesAreRead(t *testing.T) {
	root := tree(t, someFiles)
	p := newPeer(t, treeServer(t, root, nil), peerOptions{})
	entries := func(uri string) (all []M) {
		contents := at(t, p.Get("resources/read", M{"uri": uri}), "contents", 0).(M)
		assert.Equal(t, "application/json", contents["mimeType"])
		var listing struct{ Entries []M }
		require.NoError(t, json.Unmarshal([]byte(contents["text"].(string)), &listing))
		return listing.Entries
	}
	var names []string
	for _, e := range entries("file:///tree/") {
		names = append(names, e["name"].(string))
		p.Get("resources/read", M{"uri": e["uri"]})
	}
	assert.Equal(t, []string{"a.txt", "b", "b-1", "b.png", "empty", "odd name%#?.txt", "unknown.zzz9", "z.zzz9"}, names)
	below := entries("file:///tree/b")
	assert.Equal(t, below, entries("file:///tree/b/"))
	_, err := time.Parse(time.RFC3339, below[0]["lastModified"].(string))
	assert.NoError(t, err)
	assert.Equal(t, M{"uri": "file:///tree/b/d/", "name": "d", "mimeType": "inode/directory"}, without(below[1], "lastModified"))
	assert.Equal(t, M{"uri": "file:///tree/b/c.md", "name": "c.md", "mimeType": "text/markdown", "size": 3.0}, without(below[0], "lastModified"))
}

func without(m M, key string) M {
	delete(m, key)
	return m
}

func TestInvariant_F1_NoURILeadsOutOfTheRoot(t *testing.T) {
	root := tree(t, someFiles)
	outer := filepath.Dir(root.Name())
	require.NoError(t, os.Symlink(filepath.Join(outer, "secret"), filepath.Join(root.Name(), "absolute")))
	require.NoError(t, os.Symlink("../secret", filepath.Join(root.Name(), "relative")))
	require.NoError(t, os.Symlink("..", filepath.Join(root.Name(), "up")))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(root.Name(), "inside")))
	for _, hidden := range []bool{false, true} {
		p := newPeer(t, treeServer(t, root, &server.FileTreeOptions{Hidden: hidden}), peerOptions{})
		for _, uri := range []string{
			"file:///tree/../secret", "file:///tree/%2e%2e/secret", "file:///tree/%2E%2E%2Fsecret", "file:///tree/..%2fsecret",
			"file:///tree/b/../../secret", "file:///tree/b/%2e%2e/%2e%2e/secret", "file:///tree/./a.txt", "file:///tree//a.txt",
			"file:///tree//etc/passwd", "file:///tree/%2Fetc%2Fpasswd", "file:///tree/..%5csecret", "file:///tree/..\\secret",
			"file:///tree/a.txt%00", "file:///tree/%00", "file:///tree/%zz", "file:///tree/a.txt?x", "file:///tree/a.txt#x",
			"file:///tree/absolute", "file:///tree/relative", "file:///tree/up/secret", "file:///tree/up/root/a.txt",
			"file:///tree/a.txt/..", "file:///tree/a.txt/b", "file:///tree/nothing", "file:///other/a.txt", "FILE:///tree/a.txt",
			"file:///tree/%252e%252e/secret", "file:///tree/b//c.md", "file:///tree/a.txt//",
		} {
			m := p.Ask("resources/read", M{"uri": uri})
			assert.NotContains(t, m.Raw, `"text"`, uri)
			assert.Equal(t, -32002, m.Code(), uri)
		}
		assert.Equal(t, "text", at(t, p.Get("resources/read", M{"uri": "file:///tree/inside"}), "contents", 0, "text"))
		for _, uri := range []string{"file:///tree/.hidden", "file:///tree/.git/config", "file:///tree/.git/"} {
			code := p.Ask("resources/read", M{"uri": uri}).Code()
			assert.Equal(t, !hidden, code == -32002, "%s: %d", uri, code)
		}
	}
}

func TestInvariant_F2_APipeHoldsUpNobody(t *testing.T) {
	root := tree(t, someFiles)
	require.NoError(t, syscall.Mkfifo(filepath.Join(root.Name(), "pipe"), 0o600))
	p := newPeer(t, treeServer(t, root, &server.FileTreeOptions{List: true}), peerOptions{})
	p.Refused(-32002, "resources/read", M{"uri": "file:///tree/pipe"})
	uris, _ := p.every("resources/list", "resources", "uri")
	assert.NotContains(t, uris, "file:///tree/pipe")
}

// A directory that is listed may be replaced before it is opened.
func TestInvariant_F2_APipeInADirectorysPlaceHoldsUpNobody(t *testing.T) {
	root := tree(t, map[string]string{"a": "", "b/x": "", "c": ""})
	p := newPeer(t, treeServer(t, root, &server.FileTreeOptions{List: true, MIMEType: func(name string) string {
		if name == "a" && root.RemoveAll("b") == nil {
			assert.NoError(t, syscall.Mkfifo(filepath.Join(root.Name(), "b"), 0o600))
		}
		return "text/plain"
	}}), peerOptions{})
	uris, _ := p.every("resources/list", "resources", "uri")
	assert.Equal(t, []string{"file:///tree/a", "file:///tree/c"}, uris)
}

func TestReadingADirectoryStopsWhenItIsCancelled(t *testing.T) {
	root := tree(t, map[string]string{"a": "", "b": "", "c": "", "d": ""})
	synctest.Test(t, func(t *testing.T) {
		var p *peer
		var seen atomic.Int32
		p = newPeer(t, treeServer(t, root, &server.FileTreeOptions{MIMEType: func(string) string {
			if seen.Add(1) == 2 {
				p.Cancel(1, "enough")
			}
			return "text/plain"
		}}), peerOptions{})
		p.Request(1, "resources/read", M{"uri": "file:///tree/"})
		p.Silent(1)
		assert.EqualValues(t, 2, seen.Load())
	})
}

func TestInvariant_F3_WhatIsListedCanBeRead(t *testing.T) {
	root := tree(t, someFiles)
	require.NoError(t, os.Symlink(".", filepath.Join(root.Name(), "loop")))
	p := newPeer(t, treeServer(t, root, &server.FileTreeOptions{List: true}), peerOptions{})
	names, _ := p.every("resources/list", "resources", "name")
	assert.Equal(t, []string{"a.txt", "b/c.md", "b/d/e.json", "b-1/x", "b.png", "empty", "odd name%#?.txt", "unknown.zzz9", "z.zzz9"}, names)
	uris, pages := p.every("resources/list", "resources", "uri")
	assert.Equal(t, 5, pages)
	for _, uri := range uris {
		p.Get("resources/read", M{"uri": uri})
	}
	first := at(t, p.Get("resources/list", nil), "resources", 0).(M)
	assert.Equal(t, 4.0, first["size"])
	assert.Equal(t, "text/plain", first["mimeType"])
	assert.NotEmpty(t, at(t, first, "annotations", "lastModified"))
}

func TestFilesThatComeAndGoBetweenPages(t *testing.T) {
	root := tree(t, map[string]string{"a": "", "b/x": "", "b/y": "", "c": ""})
	p := newPeer(t, treeServer(t, root, &server.FileTreeOptions{List: true}), peerOptions{})
	first := p.Get("resources/list", nil)
	require.NoError(t, root.Remove("b/x")) // the last one on the page
	require.NoError(t, root.Mkdir("b/w", 0o700))
	require.NoError(t, root.WriteFile("b/w/1", nil, 0o600))
	require.NoError(t, root.WriteFile("b/z", nil, 0o600))
	var names []any
	for cursor := first["nextCursor"]; cursor != nil; {
		page := p.Get("resources/list", M{"cursor": cursor})
		for _, r := range page["resources"].([]any) {
			names = append(names, r.(M)["name"])
		}
		cursor = page["nextCursor"]
	}
	assert.Equal(t, []any{"b/y", "b/z", "c"}, names)
}

func TestFilesThatAreTooLarge(t *testing.T) {
	root := tree(t, map[string]string{"fits": "12345678", "large": "123456789"})
	p := newPeer(t, treeServer(t, root, &server.FileTreeOptions{MaxSize: 8}), peerOptions{})
	p.Get("resources/read", M{"uri": "file:///tree/fits"})
	m := p.Refused(-32603, "resources/read", M{"uri": "file:///tree/large"})
	assert.Contains(t, m.Error.Message, "9 bytes")
}

func TestLargeFileIsReadWhole(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 80_000)
	p := newPeer(t, treeServer(t, tree(t, map[string]string{"large": text}), nil), peerOptions{})
	got := at(t, p.Get("resources/read", M{"uri": "file:///tree/large"}), "contents", 0, "text").(string)
	assert.True(t, got == text, "%d bytes instead of %d", len(got), len(text))
}

func TestFileTreeOptions(t *testing.T) {
	root := tree(t, map[string]string{"a.x": "a", "b.x": "b"})
	s := plain(t, nil)
	s.MustAddFileTree("file:///tree/", root, &server.FileTreeOptions{
		Name: "project", Title: "Project", Description: "its files", List: true,
		MIMEType: func(path string) string { return map[string]string{"a.x": "text/a"}[path] },
		Cache:    &server.CacheHint{TTL: time.Second, Public: true},
	})
	p := newPeer(t, s, peerOptions{Version: "2026-07-28"})
	listed := at(t, p.Get("resources/templates/list", nil), "resourceTemplates").([]any)
	assert.Equal(t, []any{M{"uriTemplate": "file:///tree/{+path}", "name": "project", "title": "Project", "description": "its files"}}, listed)
	got := p.Get("resources/read", M{"uri": "file:///tree/a.x"})
	assert.Equal(t, "text/a", at(t, got, "contents", 0, "mimeType"))
	assert.Equal(t, []any{1000.0, "public"}, hintOf(got))
	assert.Equal(t, "text/plain", at(t, p.Get("resources/read", M{"uri": "file:///tree/b.x"}), "contents", 0, "mimeType"))

	s.SetResourceFilter(func(_ context.Context, _ *servercontext.Request, uri string, _ *mcp.Resource) bool {
		return !strings.HasSuffix(uri, "/a.x")
	})
	uris, _ := p.every("resources/list", "resources", "uri")
	assert.Equal(t, []string{"file:///tree/b.x"}, uris)
	p.Refused(-32602, "resources/read", M{"uri": "file:///tree/a.x"})

	s.MustAddFileTree("file:///tree/", root, nil) // replaced by one that lists nothing
	uris, _ = p.every("resources/list", "resources", "uri")
	assert.Empty(t, uris)
	s.RemoveFileTree("file:///tree/")
	p.Refused(-32602, "resources/read", M{"uri": "file:///tree/b.x"})
}

func TestFileTreeRegistrationErrors(t *testing.T) {
	s := plain(t, nil)
	root := tree(t, nil)
	for name, err := range map[string]error{
		"no slash": s.AddFileTree("file:///tree", root, nil),
		"no URI":   s.AddFileTree("tree/", root, nil),
		"query":    s.AddFileTree("file:///tree?/", root, nil),
		"template": s.AddFileTree("file:///{x}/", root, nil),
		"nil root": s.AddFileTree("file:///tree/", nil, nil),
	} {
		var r *server.RegistrationError
		assert.ErrorAs(t, err, &r, name)
	}
	assert.Panics(t, func() { s.MustAddFileTree("", root, nil) })
}

// FuzzFileTree looks for a URI that leads out of the root.
func FuzzFileTree(f *testing.F) {
	for _, uri := range []string{"a.txt", "../secret", "%2e%2e/secret", "b/%2E./secret", "..%2fsecret", "\\..\\secret", "up/secret"} {
		f.Add(uri)
	}
	outer := f.TempDir()
	require.NoError(f, os.WriteFile(filepath.Join(outer, "secret"), []byte("the secret"), 0o600))
	require.NoError(f, os.MkdirAll(filepath.Join(outer, "root", "b"), 0o700))
	require.NoError(f, os.WriteFile(filepath.Join(outer, "root", "a.txt"), []byte("text"), 0o600))
	require.NoError(f, os.Symlink("..", filepath.Join(outer, "root", "up")))
	root, err := os.OpenRoot(filepath.Join(outer, "root"))
	require.NoError(f, err)
	f.Cleanup(func() { root.Close() })
	s := plain(f, nil)
	s.MustAddFileTree("file:///tree/", root, &server.FileTreeOptions{Hidden: true})
	f.Fuzz(func(t *testing.T, path string) {
		m := newPeer(t, s, peerOptions{}).Ask("resources/read", M{"uri": "file:///tree/" + path})
		for _, secret := range []string{"the secret", "secret\\\",\\\"", "root/"} {
			if bytes.Contains(m.Result, []byte(secret)) {
				t.Fatalf("%q: %s", path, m.Raw)
			}
		}
		if m.Error != nil && !slices.Contains([]int{-32002, -32602}, m.Error.Code) {
			t.Fatalf("%q: %s", path, m.Raw)
		}
	})
}
