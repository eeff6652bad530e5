package skills

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fresh is for how long a catalog is taken for the tree as it is: whoever asks for one
// skill after the other does not have the tree walked each time.
const fresh = time.Second

// library is the extension of one server.
type library struct {
	server  *server.Server
	tree    fs.FS
	options Options // with defaults in force; never changed

	scanning chan struct{}             // holds one value while a scan runs; guards digests
	digests  digests                   // what scans have computed
	catalog  atomic.Pointer[catalog]   // the newest; nil only before the first scan
	scanned  atomic.Pointer[time.Time] // when the scan of catalog began
}

// Enable adds the extension to s and serves the skills of a tree. options may be nil.
//
// It is an error when the tree cannot be walked, when a skill breaks a rule (each such
// skill is a [*SkillError] in the error), when options are unusable, or when s has the
// extension already. Nothing is added then. Skills that break a rule later are not served from then
// on, and logged.
//
// The extension exists in the stateless era. The files are resources in every revision.
func Enable(s *server.Server, tree fs.FS, options *Options) error {
	o, err := options.withDefaults()
	if err != nil {
		return err
	}
	l := &library{server: s, tree: tree, options: o, scanning: make(chan struct{}, 1), digests: digests{files: map[string]*known{}}}
	first, err := l.scan(context.Background())
	if err != nil {
		return err
	}
	if err := first.problems(); err != nil {
		return err
	}
	settings := map[string]any{}
	if o.DirectoryRead {
		settings["directoryRead"] = true
	}
	if err := s.AddExtension(&server.Extension{ID: ID, Settings: settings, Methods: l.methods()}); err != nil {
		return err
	}
	id := o.Scheme + "://"
	template := &mcp.ResourceTemplate{URITemplate: id + "{+path}", Name: "skills", Description: "Files of skills."}
	if err := s.AddResourceTemplate(template, l.read, &server.ResourceOptions{Cache: &o.Cache}); err != nil {
		return err
	}
	return s.AddResourceLister(id, l.list)
}

// now returns a catalog for a request.
func (l *library) now(ctx context.Context) (*catalog, error) {
	c, err := l.scan(ctx)
	if err != nil {
		return nil, l.broken(ctx, err)
	}
	return c, nil
}

// broken is what clients are told when the tree fails; operators get the reason.
func (l *library) broken(ctx context.Context, err error) error {
	if cancelled := cancellation.Checkpoint(ctx); cancelled != nil {
		return cancelled
	}
	l.server.Logger().Error("the tree of skills failed", "error", err)
	return &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: "the skill could not be read"}
}

// scan makes a catalog, unless another request has just made one.
func (l *library) scan(ctx context.Context) (*catalog, error) {
	if c := l.newest(); c != nil {
		return c, nil
	}
	select {
	case l.scanning <- struct{}{}:
	case <-ctx.Done():
		return nil, cancellation.Checkpoint(ctx)
	}
	defer func() { <-l.scanning }()
	if c := l.newest(); c != nil {
		return c, nil
	}
	began := time.Now()
	l.digests.round++
	run := scan{
		tree: l.tree, options: &l.options, digests: &l.digests, found: map[string]fs.FileInfo{},
		catalog: &catalog{files: map[string]*file{}, directories: map[string]map[string]*mcp.Resource{}},
	}
	next, err := run.run(ctx)
	if err != nil {
		return nil, err
	}
	before := l.catalog.Swap(next)
	l.scanned.Store(&began)
	if before != nil {
		l.tell(before, next)
	}
	return next, nil
}

// newest returns the catalog if it is fresh.
func (l *library) newest() *catalog {
	c, at := l.catalog.Load(), l.scanned.Load()
	if c == nil || at == nil || time.Since(*at) >= fresh {
		return nil
	}
	return c
}

// tell tells clients that the list of resources has changed, and operators what cannot be
// served any more.
func (l *library) tell(before, now *catalog) {
	if !before.same(now) {
		l.server.ResourcesChanged()
	}
	said := map[string]bool{}
	for _, e := range before.refused {
		said[e.Error()] = true
	}
	for _, e := range now.refused {
		if !said[e.Error()] {
			l.server.Logger().Warn("a skill is not served", "path", e.Path, "error", e.Err)
		}
	}
}

// children returns what is in a directory, in the order of the URIs; nil if it is none.
func (c *catalog) children(uri string) []*mcp.Resource {
	below := c.directories[uri]
	if below == nil {
		return nil
	}
	children := make([]*mcp.Resource, 0, len(below))
	for _, name := range slices.Sorted(maps.Keys(below)) {
		children = append(children, below[name])
	}
	return children
}
