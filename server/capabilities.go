package server

import "github.com/modelcontextprotocol/go-sdk/mcp"

// offered returns what the server advertises to the newest clients: what is
// registered, unless the operator said otherwise.
func (s *Server) offered(r *registry) *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{}
	if s.options.Capabilities != nil {
		*c = *s.options.Capabilities
	} else {
		if !s.options.NoLogging {
			c.Logging = &mcp.LoggingCapabilities{}
		}
		if r.had&hasTools != 0 {
			c.Tools = &mcp.ToolCapabilities{ListChanged: true}
		}
		if r.had&hasPrompts != 0 {
			c.Prompts = &mcp.PromptCapabilities{ListChanged: true}
		}
		if r.had&hasResources != 0 {
			c.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}
		}
		if r.had&hasCompletions != 0 {
			c.Completions = &mcp.CompletionCapabilities{}
		}
	}
	extensions := make(map[string]any, len(c.Extensions)+len(s.options.Extensions))
	for id, settings := range c.Extensions {
		extensions[id] = settings
	}
	for id, settings := range s.options.Extensions {
		if settings == nil {
			settings = map[string]any{} // an object, never null
		}
		extensions[id] = settings
	}
	r.advertise(extensions)
	c.Extensions = extensions
	return c
}

// capabilities returns what is advertised in this revision.
func (r *revision) capabilities(offered *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	c := *offered
	if !r.toolAnnotations {
		c.Completions = nil // the method exists, its capability does not
	}
	if !r.stateless {
		c.Extensions = nil
	}
	return &c
}

// capabilities are the capabilities as this revision has them.
func (s *Server) capabilities(reg *registry, rev *revision) *mcp.ServerCapabilities {
	return rev.capabilities(reg.offered)
}

func advertisesTools(reg *registry) bool       { return reg.offered.Tools != nil }
func advertisesPrompts(reg *registry) bool     { return reg.offered.Prompts != nil }
func advertisesResources(reg *registry) bool   { return reg.offered.Resources != nil }
func advertisesCompletions(reg *registry) bool { return reg.offered.Completions != nil }
func advertisesLogging(reg *registry) bool     { return reg.offered.Logging != nil }

func advertisesSubscribe(reg *registry) bool {
	return reg.offered.Resources != nil && reg.offered.Resources.Subscribe
}

// announces tells whether the server promised to tell of such an event.
func (r *registry) announces(kind eventKind) bool {
	c := r.offered
	switch kind {
	case eventToolsChanged:
		return c.Tools != nil && c.Tools.ListChanged
	case eventPromptsChanged:
		return c.Prompts != nil && c.Prompts.ListChanged
	case eventResourcesChanged:
		return c.Resources != nil && c.Resources.ListChanged
	}
	return c.Resources != nil && c.Resources.Subscribe
}
