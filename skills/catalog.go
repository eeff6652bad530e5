package skills

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	manifest      = "SKILL.md"
	mimeManifest  = "text/markdown"
	mimeDirectory = "inode/directory"
	resourcesKind = "dynamic" // what an entry has in place of digests
)

// catalog is the tree as one scan has found it. It never changes.
type catalog struct {
	skills      []*skill // that are served, by URI
	files       map[string]*file
	directories map[string]map[string]*mcp.Resource // by URI, their children by URI; of each skill and all below
	refused     []*SkillError                       // by path
}

// skill is one skill that is served.
type skill struct {
	uri   string // of its SKILL.md
	path  string // of its directory
	front *frontmatter
	entry json.RawMessage // as clients get it
}

// file is a file of a skill, or of several where skills are nested.
type file struct {
	uri, path string
	mimeType  string // "": its contents tell
	size      int64
	modified  time.Time
	skill     *skill // whose SKILL.md it is; nil for others
}

// resource describes a file as lists do.
func (f *file) resource() *mcp.Resource {
	name := f.path[strings.LastIndexByte(f.path, '/')+1:]
	r := &mcp.Resource{URI: f.uri, Name: name, MIMEType: f.mimeType, Size: f.size}
	if f.skill != nil {
		r.Name, r.Description = f.skill.front.name, f.skill.front.description
	}
	if !f.modified.IsZero() {
		r.Annotations = &mcp.Annotations{LastModified: f.modified.UTC().Format(time.RFC3339)}
	}
	return r
}

// entry is a skill as clients get it.
type entry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   any             `json:"resources"` // []entryFile, or "dynamic"
}

type entryFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// encode writes an entry. files are all of the skill's, nil when they have no digests.
func (s *skill) encode(files []entryFile) (err error) {
	e := entry{URI: s.uri, Frontmatter: s.front.raw, Resources: resourcesKind}
	if files != nil {
		e.Resources = files
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return err
	}
	s.entry = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return nil
}

// find returns the skill whose SKILL.md has this URI, nil if there is none.
func (c *catalog) find(uri string) *skill {
	if f := c.files[uri]; f != nil {
		return f.skill
	}
	return nil
}

// same tells whether two catalogs have the same entries.
func (c *catalog) same(other *catalog) bool {
	return slices.EqualFunc(c.skills, other.skills, func(a, b *skill) bool { return bytes.Equal(a.entry, b.entry) })
}

// after returns the position of the first of items whose URI follows one.
func after[T any](items []T, uri string, uriOf func(T) string) int {
	i, found := slices.BinarySearchFunc(items, uri, func(item T, uri string) int { return strings.Compare(uriOf(item), uri) })
	if found {
		i++
	}
	return i
}
