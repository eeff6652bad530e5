package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ResourceLister lists resources that are not registered one by one, such as the
// rows of a table. after is "" for the first page, or what next was on the page
// before; it went through the client, so treat it as input. A lister returns up to
// limit resources, and as next where to go on, "" at the end. Its resources are
// read through a template.
type ResourceLister func(ctx context.Context, req *servercontext.Request, after string, limit int) (page []*mcp.Resource, next string, err error)

// lister is a registered lister. It never changes.
type lister struct {
	id   string
	list ResourceLister
}

// AddResourceLister has resources/list continue with what the lister returns,
// after the registered resources and in the order of the ids. A lister of the
// same id is replaced. Call [Server.ResourcesChanged] when its resources change.
//
// It is an error when the id is empty or holds a zero byte, or when list is nil.
func (s *Server) AddResourceLister(id string, list ResourceLister) error {
	if id == "" || strings.IndexByte(id, 0) >= 0 || list == nil {
		return &RegistrationError{Kind: "resource lister", Name: id, Err: errors.New("it needs an id without zero bytes and a function")}
	}
	s.change(func(r *registry) {
		r.removeLister(id)
		r.listers = append(r.listers, &lister{id, list})
		slices.SortFunc(r.listers, func(a, b *lister) int { return strings.Compare(a.id, b.id) })
		r.had |= hasResources
	})
	s.publish(event{kind: eventResourcesChanged})
	return nil
}

// MustAddResourceLister is AddResourceLister that panics where that returns an error.
func (s *Server) MustAddResourceLister(id string, list ResourceLister) {
	if err := s.AddResourceLister(id, list); err != nil {
		panic(err)
	}
}

// RemoveResourceLister takes a lister away. An unknown id is ignored.
func (s *Server) RemoveResourceLister(id string) {
	s.change(func(r *registry) { r.removeLister(id) })
	s.publish(event{kind: eventResourcesChanged})
}

func (r *registry) removeLister(id string) {
	r.listers = slices.DeleteFunc(r.listers, func(l *lister) bool { return l.id == id })
}

// cursorLister is the kind of cursors whose name is a lister's id and its own
// cursor, with a zero byte between them.
const cursorLister = "l"

// listAllResources answers resources/list where there are listers: one page, which
// may begin with registered resources and go on with those of several listers.
func (c *Call) listAllResources(ctx context.Context, req *servercontext.Request) (any, error) {
	kind, name, err := cursorOf(req.Params())
	if err != nil {
		return nil, err
	}
	size := c.server.options.PageSize
	filtered := c.reg.filters.resource != nil
	result := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, Cacheable: c.server.hint(methodListResources, filtered)}
	id, after := "", ""
	switch kind {
	case cursorItem:
		var keep func(*mcp.Resource) bool
		if filtered {
			keep = func(r *mcp.Resource) bool { return c.seesResource(ctx, r.URI, r) }
		}
		registered := c.reg.resourceList()
		items, last := registered.page(registered.after(name), size, keep)
		result.Resources = items
		if last != "" {
			result.NextCursor = encodeCursor(cursorItem, last)
			return result, nil
		}
	case cursorLister:
		var ok bool
		if id, after, ok = strings.Cut(name, "\x00"); !ok {
			return nil, errCursor
		}
	default:
		return nil, errCursor
	}
	for _, l := range c.reg.listers {
		if l.id < id {
			continue
		}
		if l.id != id {
			after = "" // the lister that the cursor is of was removed, or is done
		}
		for {
			room := size - len(result.Resources)
			if room <= 0 {
				result.NextCursor = encodeCursor(cursorLister, l.id+"\x00"+after)
				return result, nil
			}
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			page, next, err := l.list(ctx, c.request, after, room)
			if err != nil {
				return nil, err
			}
			for _, r := range page {
				if r != nil && (!filtered || c.seesResource(ctx, r.URI, r)) {
					result.Resources = append(result.Resources, r)
				}
			}
			if next == "" {
				break
			}
			if next == after {
				return nil, errors.New("a resource lister does not move on")
			}
			after = next
		}
	}
	return result, nil
}
