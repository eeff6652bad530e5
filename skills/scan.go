package skills

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/mediatype"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Invariants of this file. Each has a test named after it.
//
//	K1  What an entry lists can be read; of the tree nothing else can.
//	K2  A skill is served whole or not at all: neither one that breaks a rule nor one above
//	    a limit is.
//	K3  An unchanged file is hashed once, and a file that changed is hashed again.

// scan is one walk through the tree.
type scan struct {
	tree    fs.FS
	options *Options
	digests *digests               // what former scans have computed
	found   map[string]fs.FileInfo // files by path
	folders []string               // the paths of directories
	catalog *catalog
}

// walk finds files and directories. Links, devices and names that no URI can have
// are passed over, and so is what is hidden.
func (s *scan) walk(ctx context.Context) error {
	return fs.WalkDir(s.tree, ".", func(name string, d fs.DirEntry, err error) error {
		if stop := cancellation.Checkpoint(ctx); stop != nil {
			return stop
		}
		switch {
		case err != nil && name == ".":
			return err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil:
			return nil // it went away meanwhile
		case name != "." && (!s.options.Hidden && strings.HasPrefix(d.Name(), ".") || !utf8.ValidString(d.Name())):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			s.folders = append(s.folders, name)
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		if info, err := d.Info(); err == nil {
			s.found[name] = info
		}
		return nil
	})
}

// run makes a catalog of the tree. It returns an error when the tree cannot be walked, or when ctx
// has ended; what is wrong with a skill is in the catalog.
func (s *scan) run(ctx context.Context) (*catalog, error) {
	if err := s.walk(ctx); err != nil {
		return nil, err
	}
	// A skill has all that is below it, other skills included.
	files, folders := map[string][]string{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.found)) {
		s.sort(files, path.Dir(name), name)
	}
	for _, name := range s.folders {
		s.sort(folders, name, name)
	}
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		if err := s.skill(ctx, dir, files[dir], folders[dir]); err != nil {
			if stop := cancellation.Checkpoint(ctx); stop != nil {
				return nil, stop
			}
			s.catalog.refused = append(s.catalog.refused, &SkillError{Path: dir, Err: err})
		}
	}
	slices.SortFunc(s.catalog.skills, func(a, b *skill) int { return strings.Compare(a.uri, b.uri) })
	s.digests.keep(s.found)
	return s.catalog, nil
}

// sort adds a name to what each skill has, from the directory dir upwards.
func (s *scan) sort(of map[string][]string, dir, name string) {
	for ; ; dir = path.Dir(dir) {
		if s.found[path.Join(dir, manifest)] != nil {
			of[dir] = append(of[dir], name)
		}
		if dir == "." {
			return
		}
	}
}

// skill adds the skill of one directory to the catalog (K2).
func (s *scan) skill(ctx context.Context, dir string, names, folders []string) error {
	if len(names) > MaxFiles {
		return fmt.Errorf("it has %d files, a skill may have %d", len(names), MaxFiles)
	}
	dynamic := s.options.Dynamic != nil && s.options.Dynamic(dir)
	var total int64
	for _, name := range names {
		if total += s.found[name].Size(); total > MaxBytes {
			return fmt.Errorf("its files have more than %d bytes together", MaxBytes)
		}
	}
	top := path.Join(dir, manifest)
	front, err := s.digests.frontmatter(ctx, s.tree, top, s.found[top])
	if err != nil {
		return err
	}
	if full := s.options.fullPath(dir); path.Base(full) != front.name || full == "" {
		return fmt.Errorf("its name is %q, and must be the last part of its path, %q", front.name, full)
	}
	one := &skill{uri: s.options.uriOf(top), path: dir, front: front}
	var listed []entryFile
	total = 0
	if !dynamic {
		for _, name := range names {
			d, err := s.digests.of(ctx, s.tree, name, s.found[name])
			if err != nil {
				return err
			}
			if total += d.size; total > MaxBytes {
				return fmt.Errorf("its files have more than %d bytes together", MaxBytes)
			}
			listed = append(listed, entryFile{URI: s.options.uriOf(name), Digest: d.text, Size: d.size})
		}
	}
	if err := one.encode(listed); err != nil {
		return err
	}
	s.catalog.skills = append(s.catalog.skills, one)
	for _, name := range names {
		s.file(name)
	}
	s.catalog.files[one.uri].skill = one
	s.catalog.files[one.uri].mimeType = mimeManifest
	for _, folder := range folders {
		if uri := s.options.uriOf(folder); s.catalog.directories[uri] == nil {
			s.catalog.directories[uri] = map[string]*mcp.Resource{}
		}
	}
	for _, folder := range folders {
		if folder != dir {
			s.list(folder, &mcp.Resource{URI: s.options.uriOf(folder), Name: path.Base(folder), MIMEType: mimeDirectory})
		}
	}
	for _, name := range names {
		s.list(name, s.catalog.files[s.options.uriOf(name)].resource())
	}
	return nil
}

// list puts a file or directory into the one above it. A SKILL.md may have been listed before
// as any other file of the skill around it.
func (s *scan) list(name string, child *mcp.Resource) {
	s.catalog.directories[s.options.uriOf(path.Dir(name))][child.URI] = child
}

// file makes a file readable (K1).
func (s *scan) file(name string) {
	uri := s.options.uriOf(name)
	if s.catalog.files[uri] != nil {
		return // of a skill around this one
	}
	info := s.found[name]
	f := &file{uri: uri, path: name, size: info.Size(), modified: info.ModTime()}
	if s.options.MIMEType != nil {
		f.mimeType = s.options.MIMEType(name)
	}
	f.mimeType = cmp.Or(f.mimeType, mediatype.Of(name, nil))
	s.catalog.files[uri] = f
}
