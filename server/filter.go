package server

import (
	"context"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Filters decide, request by request, who sees what. req tells who asks: the
// bearer token, headers, the client. What a filter hides is not listed, and is
// unknown when it is called, read, subscribed to or completed all the same.
//
// Lists must not depend on the connection or on requests before, only on what the
// request itself carries. A filter runs once per item and request, on the
// request's goroutine; ctx carries the request's token.
//
// Specification: server/tools, server/prompts, server/resources (2026-07-28): lists
// may vary by authorization and by nothing else.
type (
	// ToolFilter tells whether the request may see and call t.
	ToolFilter func(ctx context.Context, req *servercontext.Request, t *mcp.Tool) bool
	// PromptFilter tells whether the request may see and get p.
	PromptFilter func(ctx context.Context, req *servercontext.Request, p *mcp.Prompt) bool
	// ResourceFilter tells whether the request may see and read the resource with
	// this URI. r describes it, nil when it is the instance of a template that is
	// about to be read.
	ResourceFilter func(ctx context.Context, req *servercontext.Request, uri string, r *mcp.Resource) bool
	// TemplateFilter tells whether the request may see t, and read through it.
	TemplateFilter func(ctx context.Context, req *servercontext.Request, t *mcp.ResourceTemplate) bool
)

// filters are the filters in force; nil ones let everything through.
type filters struct {
	tool     ToolFilter
	prompt   PromptFilter
	resource ResourceFilter
	template TemplateFilter
}

// SetToolFilter decides who sees and may call which tools; nil lets everyone.
// While there is a filter, lists of tools are private to caches.
func (s *Server) SetToolFilter(f ToolFilter) {
	s.change(func(r *registry) { r.filters.tool = f })
	s.publish(event{kind: eventToolsChanged})
}

// SetPromptFilter is SetToolFilter for prompts.
func (s *Server) SetPromptFilter(f PromptFilter) {
	s.change(func(r *registry) { r.filters.prompt = f })
	s.publish(event{kind: eventPromptsChanged})
}

// SetResourceFilter is SetToolFilter for resources, listed ones and instances of
// templates alike.
func (s *Server) SetResourceFilter(f ResourceFilter) {
	s.change(func(r *registry) { r.filters.resource = f })
	s.publish(event{kind: eventResourcesChanged})
}

// SetTemplateFilter is SetToolFilter for resource templates.
func (s *Server) SetTemplateFilter(f TemplateFilter) {
	s.change(func(r *registry) { r.filters.template = f })
	s.publish(event{kind: eventResourcesChanged})
}

// SeesResource tells whether the request may see the resource with this URI. What an
// extension tells of resources has to pass the same filter as they do.
func (s *Server) SeesResource(ctx context.Context, req *servercontext.Request, uri string) bool {
	f := s.current().filters.resource
	return f == nil || f(ctx, req, uri, nil)
}

// FiltersResources tells whether a filter decides who sees which resources: what tells
// of resources is then private to caches.
func (s *Server) FiltersResources() bool { return s.current().filters.resource != nil }

// findTool returns the tool of that name, nil when there is none for this request.
func (c *Call) findTool(ctx context.Context, name string) *tool {
	t := c.reg.tools[name]
	if t != nil && c.reg.filters.tool != nil && !c.reg.filters.tool(ctx, c.request, t.definition) {
		return nil
	}
	return t
}

// findPrompt is findTool for prompts.
func (c *Call) findPrompt(ctx context.Context, name string) *prompt {
	p := c.reg.prompts[name]
	if p != nil && c.reg.filters.prompt != nil && !c.reg.filters.prompt(ctx, c.request, p.definition) {
		return nil
	}
	return p
}

// seesTemplate tells whether the request may see t.
func (c *Call) seesTemplate(ctx context.Context, t *template) bool {
	return c.reg.filters.template == nil || c.reg.filters.template(ctx, c.request, t.definition)
}

// seesResource tells whether the request may see the resource; r is nil for
// instances of templates.
func (c *Call) seesResource(ctx context.Context, uri string, r *mcp.Resource) bool {
	return c.reg.filters.resource == nil || c.reg.filters.resource(ctx, c.request, uri, r)
}
