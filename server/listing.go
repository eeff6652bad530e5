package server

import (
	"context"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The four lists. Without filters and listers every client gets the same pages,
// which are made and encoded once.
//
// Specification: server/utilities/pagination; server/tools, server/prompts, server/resources.

// listPage answers a request for one page of l: from the cache if no filter (keep)
// says otherwise.
func listPage[T any](c *Call, req *servercontext.Request, l *list[T], keep func(T) bool, make func(items []T, next string, cache mcp.Cacheable) any) (any, error) {
	after, err := itemCursor(req.Params())
	if err != nil {
		return nil, err
	}
	from, size := l.after(after), c.server.options.PageSize
	page := func() any {
		items, last := l.page(from, size, keep)
		return make(items, encodeCursor(cursorItem, last), c.server.hint(c.method.name, keep != nil))
	}
	// Positions between two pages come from cursors of an older registry, or from
	// nowhere; keeping those would let clients fill the cache.
	if keep != nil || from%size != 0 {
		return page(), nil
	}
	return c.reg.pages.result(pageKey{method: c.method.name, from: from}, page), nil
}

func handleListTools(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	var keep func(*mcp.Tool) bool
	if f := c.reg.filters.tool; f != nil {
		keep = func(t *mcp.Tool) bool { return f(ctx, req, t) }
	}
	return listPage(c, req, c.reg.toolList(), keep, func(items []*mcp.Tool, next string, cache mcp.Cacheable) any {
		return &mcp.ListToolsResult{Tools: items, NextCursor: next, Cacheable: cache}
	})
}

func handleListPrompts(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	var keep func(*mcp.Prompt) bool
	if f := c.reg.filters.prompt; f != nil {
		keep = func(p *mcp.Prompt) bool { return f(ctx, req, p) }
	}
	return listPage(c, req, c.reg.promptList(), keep, func(items []*mcp.Prompt, next string, cache mcp.Cacheable) any {
		return &mcp.ListPromptsResult{Prompts: items, NextCursor: next, Cacheable: cache}
	})
}

func handleListTemplates(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	var keep func(*mcp.ResourceTemplate) bool
	if f := c.reg.filters.template; f != nil {
		keep = func(t *mcp.ResourceTemplate) bool { return f(ctx, req, t) }
	}
	return listPage(c, req, c.reg.templateList(), keep, func(items []*mcp.ResourceTemplate, next string, cache mcp.Cacheable) any {
		return &mcp.ListResourceTemplatesResult{ResourceTemplates: items, NextCursor: next, Cacheable: cache}
	})
}

func handleListResources(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	if len(c.reg.listers) > 0 {
		return c.listAllResources(ctx, req)
	}
	var keep func(*mcp.Resource) bool
	if c.reg.filters.resource != nil {
		keep = func(r *mcp.Resource) bool { return c.seesResource(ctx, r.URI, r) }
	}
	return listPage(c, req, c.reg.resourceList(), keep, func(items []*mcp.Resource, next string, cache mcp.Cacheable) any {
		return &mcp.ListResourcesResult{Resources: items, NextCursor: next, Cacheable: cache}
	})
}

// listEnd is how every list ends.
func (r *revision) listEnd(o *object, next string, cache mcp.Cacheable) []byte {
	o.text("nextCursor", next)
	r.appendCache(o, cache)
	return o.end()
}

// appendList appends the page of a list, its items projected to the revision.
func appendList[T any](b []byte, c *Call, result any, meta mcp.Meta, name string, items []T, next string, cache mcp.Cacheable, project func(T) any) ([]byte, error) {
	return c.reg.pages.append(b, result, c.rev, func() ([]byte, error) {
		o := c.rev.appendHead(nil, c, resultComplete, meta)
		o.key(name)
		o.b = append(o.b, '[')
		for i, item := range items {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			var err error
			if o.b, err = appendJSON(o.b, project(item)); err != nil {
				return nil, err
			}
		}
		o.b = append(o.b, ']')
		return c.rev.listEnd(&o, next, cache), nil
	})
}

// appendListResult appends one of the four lists.
func (r *revision) appendListResult(b []byte, c *Call, result any) ([]byte, error) {
	switch v := result.(type) {
	case *mcp.ListToolsResult:
		return appendList(b, c, v, v.Meta, "tools", v.Tools, v.NextCursor, v.Cacheable, func(t *mcp.Tool) any { return r.projectTool(t) })
	case *mcp.ListPromptsResult:
		return appendList(b, c, v, v.Meta, "prompts", v.Prompts, v.NextCursor, v.Cacheable, r.projectPrompt)
	case *mcp.ListResourcesResult:
		return appendList(b, c, v, v.Meta, "resources", v.Resources, v.NextCursor, v.Cacheable, func(d *mcp.Resource) any { return r.projectResource(c.reg, d) })
	case *mcp.ListResourceTemplatesResult:
		return appendList(b, c, v, v.Meta, "resourceTemplates", v.ResourceTemplates, v.NextCursor, v.Cacheable, func(d *mcp.ResourceTemplate) any { return r.projectTemplate(c.reg, d) })
	}
	panic("not a list")
}
