package skills

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/heedmcp/heed/internal/mediatype"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// read serves resources/read for the files of skills. Only URIs of the catalog lead to files,
// so that no URI can be made to lead elsewhere.
func (l *library) read(ctx context.Context, _ *servercontext.Request, in server.ReadIn) (*mcp.ReadResourceResult, error) {
	c := l.catalog.Load()
	f := c.files[in.URI]
	if f == nil {
		var err error
		if c, err = l.now(ctx); err != nil { // it may be new
			return nil, err
		}
		if f = c.files[in.URI]; f == nil {
			return nil, server.ResourceNotFound(in.URI)
		}
	}
	data, err := readFile(ctx, l.tree, f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, server.ResourceNotFound(in.URI)
	case err != nil:
		return nil, l.broken(ctx, err)
	}
	contents := &mcp.ResourceContents{URI: in.URI, MIMEType: cmp.Or(f.mimeType, mediatype.Of(f.path, data))}
	if mediatype.IsText(data) {
		contents.Text = string(data)
	} else {
		contents.Blob = data
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// list is a lister of resources: the SKILL.md of each skill. The rest is in the entries.
func (l *library) list(ctx context.Context, _ *servercontext.Request, behind string, limit int) (page []*mcp.Resource, next string, err error) {
	c, err := l.now(ctx)
	if err != nil {
		return nil, "", err
	}
	rest := c.skills[after(c.skills, behind, uriOfSkill):]
	for _, s := range rest[:min(limit, len(rest))] {
		page = append(page, c.files[s.uri].resource())
	}
	if len(rest) > limit {
		next = page[limit-1].URI
	}
	return page, next, nil
}

func uriOfSkill(s *skill) string { return s.uri }
