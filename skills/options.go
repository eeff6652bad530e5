package skills

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/heedmcp/heed/server"
)

// ID is the extension's id.
const ID = "io.modelcontextprotocol/skills"

// Limits of one skill, which every client can be expected to load.
//
// Specification: extension io.modelcontextprotocol/skills, limits.
const (
	MaxFiles = 512      // with SKILL.md
	MaxBytes = 16 << 20 // of all files together
)

// defaultPageSize is how many skills, or children of a directory, one answer has.
const defaultPageSize = 100

// Options configure the extension. A nil *Options, like the zero value, is the default.
type Options struct {
	// Scheme is that of the URIs. "": skill.
	Scheme string
	// Prefix is put before the path of each skill, such as acme/billing. "": nothing. A
	// tree that is a skill itself needs one, which ends in the skill's name.
	Prefix string
	// DirectoryRead offers resources/directory/read, for clients that look into
	// directories rather than into entries.
	DirectoryRead bool
	// Hidden serves files and directories whose names begin with a dot as well.
	Hidden bool
	// Dynamic tells, by its path in the tree, of a skill whose files are generated as they
	// are read: it is listed without digests, and some clients will not load it. nil: there is none.
	Dynamic func(path string) bool
	// MIMEType tells the type of a file by its path in the tree; nil, and "", leave it to
	// the file's extension and contents. It is not asked for SKILL.md.
	MIMEType func(path string) string
	// PageSize is how many skills, or children of a directory, are listed at once.
	// 0: 100.
	PageSize int
	// Cache tells for how long clients may keep entries, lists and files.
	Cache server.CacheHint
}

var schemeSyntax = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)

// withDefaults returns a copy in which every field holds what is in force. It is an error when
// the scheme is none, or when the prefix is no path.
func (o *Options) withDefaults() (Options, error) {
	var p Options
	if o != nil {
		p = *o
	}
	if p.Scheme == "" {
		p.Scheme = "skill"
	}
	if !schemeSyntax.MatchString(p.Scheme) {
		return p, fmt.Errorf("skills: %q is no scheme of URIs", p.Scheme)
	}
	if p.Prefix != "" {
		for segment := range strings.SplitSeq(p.Prefix, "/") {
			if segment == "" || segment == "." || segment == ".." {
				return p, fmt.Errorf("skills: the prefix %q is no path", p.Prefix)
			}
		}
	}
	if p.PageSize < 0 {
		return p, errors.New("skills: the page size is negative")
	}
	if p.PageSize == 0 {
		p.PageSize = defaultPageSize
	}
	return p, nil
}
