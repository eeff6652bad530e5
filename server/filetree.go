package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/mediatype"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Invariants of this file. Each has a test named after it.
//
//	F1  No URI leads out of the root: neither by dots, however they are encoded, nor by links.
//	F2  Only regular files and directories are opened for reading: a pipe or a
//	    device holds up nobody.
//	F3  What is listed can be read under the URI that it is listed with.

// FileTreeOptions describe a tree of files. A nil *FileTreeOptions is the zero value.
type FileTreeOptions struct {
	// Name is how the tree is called in resources/templates/list; "": files.
	Name string
	// Description and Title describe it there.
	Description, Title string
	// List has resources/list list the files, with their sizes and times. Links
	// are not listed and not followed by listing; what they lead to inside of the root can be read.
	List bool
	// Hidden serves files and directories whose names begin with a dot as well.
	Hidden bool
	// MaxSize bounds the files that can be read, in bytes. 0: 16 MiB.
	MaxSize int64
	// MIMEType tells the type of a file by its path below the root, with slashes; nil,
	// and "", leave it to the file's extension and contents.
	MIMEType func(path string) string
	// Cache tells for how long clients may keep what was read; nil:
	// Options.CacheHints["resources/read"].
	Cache *CacheHint
}

const (
	defaultMaxFile = 16 << 20
	maxTreeDepth   = 64 // directories below the root that are listed
	mimeDirectory  = "inode/directory"
)

// fileTree serves the files below a root. It never changes.
type fileTree struct {
	root    *os.Root
	uri     string // of the root; ends in a slash
	options FileTreeOptions
	server  *Server
}

// AddFileTree registers the files below root as resources. uri is the root's own
// and ends in a slash, such as file:///project/; the file a/b has the URI
// file:///project/a/b. A directory is read as a JSON object whose entries are its files and
// directories. A tree of the same URI is replaced. root must stay open.
//
// Files are text where they are UTF-8 without zero bytes, else binary. Nothing outside
// of root can be read, see [os.Root].
//
// It is an error when uri is no absolute URI or does not end in a slash, or when
// root is nil.
//
// Specification: server/resources, the file scheme and security considerations.
func (s *Server) AddFileTree(uri string, root *os.Root, options *FileTreeOptions) error {
	fail := func(err error) error { return &RegistrationError{Kind: "file tree", Name: uri, Err: err} }
	if err := checkURI(uri); err != nil {
		return fail(err)
	}
	if !strings.HasSuffix(uri, "/") || strings.ContainsAny(uri, "?#") {
		return fail(errors.New("the URI must end in a slash and have no query or fragment"))
	}
	if root == nil {
		return fail(errors.New("the root is nil"))
	}
	t := &fileTree{root: root, uri: uri, server: s}
	if options != nil {
		t.options = *options
	}
	t.options.MaxSize = orDefault(t.options.MaxSize, defaultMaxFile)
	definition := &mcp.ResourceTemplate{
		URITemplate: uri + "{+path}", Name: t.options.Name, Title: t.options.Title, Description: t.options.Description,
	}
	if definition.Name == "" {
		definition.Name = "files"
	}
	if err := s.AddResourceTemplate(definition, t.read, &ResourceOptions{Cache: t.options.Cache}); err != nil {
		return fail(err)
	}
	if !t.options.List {
		s.RemoveResourceLister(uri)
		return nil
	}
	return s.AddResourceLister(uri, t.list)
}

// MustAddFileTree is AddFileTree that panics where that returns an error.
func (s *Server) MustAddFileTree(uri string, root *os.Root, options *FileTreeOptions) {
	if err := s.AddFileTree(uri, root, options); err != nil {
		panic(err)
	}
}

// RemoveFileTree takes a tree away. Reads that are running go on. An unknown URI
// is ignored.
func (s *Server) RemoveFileTree(uri string) {
	s.RemoveResourceTemplates(uri + "{+path}")
	s.RemoveResourceLister(uri)
}

// pathOf is the path below the root that a URI means, with slashes; ok is false when it
// means none (F1). os.Root stands behind it and would not leave the root either.
func (t *fileTree) pathOf(uri string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(uri, t.uri)
	if !ok || strings.ContainsAny(rest, `?#\`) {
		return "", false
	}
	rest = strings.TrimSuffix(rest, "/")
	if rest == "" {
		return ".", true
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil || decoded == "" || decoded == "." || decoded == ".." || strings.ContainsAny(decoded, "/\\\x00") || t.hides(decoded) {
			return "", false
		}
		parts[i] = decoded
	}
	name = strings.Join(parts, "/")
	return name, fs.ValidPath(name)
}

func (t *fileTree) hides(name string) bool { return !t.options.Hidden && strings.HasPrefix(name, ".") }

// uriOf is the URI of a path below the root.
func (t *fileTree) uriOf(name string) string {
	if name == "." {
		return t.uri
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(part), "%2F", "/")
	}
	return t.uri + strings.Join(parts, "/")
}

func (t *fileTree) read(ctx context.Context, _ *servercontext.Request, in ReadIn) (*mcp.ReadResourceResult, error) {
	name, ok := t.pathOf(in.URI)
	if !ok {
		return nil, ResourceNotFound(in.URI)
	}
	f, err := t.open(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			t.server.options.Logger.Debug("file not opened", "uri", bounded(in.URI), "error", err)
		}
		return nil, ResourceNotFound(in.URI) // also when it may not be read
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return t.directory(ctx, f, in.URI, name)
	case !info.Mode().IsRegular():
		return nil, ResourceNotFound(in.URI)
	case info.Size() > t.options.MaxSize:
		return nil, fmt.Errorf("the file has %d bytes, %d can be read", info.Size(), t.options.MaxSize)
	}
	data, err := readAll(ctx, f, info.Size(), t.options.MaxSize)
	if err != nil {
		return nil, err
	}
	contents := &mcp.ResourceContents{URI: in.URI, MIMEType: t.mimeType(name, data)}
	if mediatype.IsText(data) {
		contents.Text = string(data)
	} else {
		contents.Blob = data
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// open opens a file without blocking: opening a pipe would wait for its other end (F2).
func (t *fileTree) open(name string) (*os.File, error) {
	return t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readAll reads a file of about size bytes, unless the request is cancelled or the
// file has more than bound bytes.
func readAll(ctx context.Context, r io.Reader, size, bound int64) ([]byte, error) {
	const chunk = 256 << 10
	data := make([]byte, 0, size+1)
	for {
		if err := cancellation.Checkpoint(ctx); err != nil {
			return nil, err
		}
		data = slices.Grow(data, 1)
		n, err := r.Read(data[len(data):min(cap(data), len(data)+chunk)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > bound:
			return nil, fmt.Errorf("the file has more than the %d bytes that can be read", bound)
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// entry is one file of a directory as a client reads it.
type entry struct {
	URI          string `json:"uri"`
	Name         string `json:"name"`
	MIMEType     string `json:"mimeType,omitempty"`
	Size         *int64 `json:"size,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
}

func (t *fileTree) directory(ctx context.Context, f *os.File, uri, name string) (*mcp.ReadResourceResult, error) {
	all, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	entries := []entry{}
	for _, d := range t.visible(all) {
		if err := cancellation.Checkpoint(ctx); err != nil {
			return nil, err
		}
		below := path.Join(name, d.Name())
		e := entry{URI: t.uriOf(below), Name: d.Name()}
		if info, err := d.Info(); err == nil {
			e.LastModified = info.ModTime().UTC().Format(time.RFC3339)
			if size := info.Size(); !d.IsDir() {
				e.Size = &size
			}
		}
		if d.IsDir() {
			e.MIMEType, e.URI = mimeDirectory, e.URI+"/"
		} else {
			e.MIMEType = t.mimeType(below, nil)
		}
		entries = append(entries, e)
	}
	raw, err := appendJSON(nil, map[string]any{"entries": entries})
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(raw)}}}, nil
}

// visible are the regular files and directories that are served, by name. Names
// that are no UTF-8 have no URI.
func (t *fileTree) visible(all []fs.DirEntry) []fs.DirEntry {
	all = slices.DeleteFunc(all, func(d fs.DirEntry) bool {
		name, ok := t.pathOf(t.uriOf(d.Name()))
		return !ok || name != d.Name() || !d.IsDir() && !d.Type().IsRegular()
	})
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// list is a ResourceLister of the files, in the order of a walk through the tree. after is a path.
func (t *fileTree) list(ctx context.Context, _ *servercontext.Request, after string, limit int) (page []*mcp.Resource, next string, err error) {
	w := walk{tree: t, ctx: ctx, limit: limit}
	var behind []string
	if after != "" {
		behind = strings.Split(after, "/")
	}
	if err := w.directory(".", behind, 0); err != nil && !errors.Is(err, errPageFull) {
		return nil, "", err
	} else if err != nil {
		return w.page, w.last, nil
	}
	return w.page, "", nil
}

var errPageFull = errors.New("the page is full")

// walk gathers one page of files.
type walk struct {
	tree  *fileTree
	ctx   context.Context
	limit int
	page  []*mcp.Resource
	last  string // the path of the last one
}

// directory walks through one directory. behind is where to go on, as a path
// below the directory; nil: at its start.
func (w *walk) directory(name string, behind []string, depth int) error {
	if err := cancellation.Checkpoint(w.ctx); err != nil {
		return err
	}
	f, err := w.tree.open(name) // something else may be in the directory's place by now
	if err != nil {
		return nil // gone, or not for us
	}
	all, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return nil
	}
	for _, d := range w.tree.visible(all) {
		var below []string
		if len(behind) > 0 {
			if order := strings.Compare(d.Name(), behind[0]); order < 0 || order == 0 && !d.IsDir() {
				continue
			} else if order == 0 {
				below = behind[1:]
			}
		}
		inner := path.Join(name, d.Name())
		if d.IsDir() {
			if depth < maxTreeDepth {
				if err := w.directory(inner, below, depth+1); err != nil {
					return err
				}
			}
			continue
		}
		if len(w.page) == w.limit {
			return errPageFull
		}
		w.file(inner, d)
	}
	return nil
}

func (w *walk) file(name string, d fs.DirEntry) {
	r := &mcp.Resource{URI: w.tree.uriOf(name), Name: name, MIMEType: w.tree.mimeType(name, nil)}
	if info, err := d.Info(); err == nil {
		r.Size = info.Size()
		r.Annotations = &mcp.Annotations{LastModified: info.ModTime().UTC().Format(time.RFC3339)}
	}
	w.page = append(w.page, r)
	w.last = name
}
