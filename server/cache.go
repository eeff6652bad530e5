package server

import (
	"time"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// CacheHint tells clients and intermediaries of the stateless era for how long
// they may keep a result. The zero value is what is sent by default: do not keep
// it, and do not share it.
//
// Specification: server/utilities/caching (2026-07-28).
type CacheHint struct {
	// TTL is how long the result stays fresh, in whole milliseconds; 0 or less: it is
	// stale at once.
	TTL time.Duration
	// Public lets caches serve the result to any user. It is ignored where a
	// filter decides who sees what.
	Public bool
}

// cacheable is h as results carry it.
func (h CacheHint) cacheable() mcp.Cacheable {
	c := mcp.Cacheable{TTLMs: int(max(h.TTL, 0).Milliseconds()), CacheScope: cachePrivate}
	if h.Public {
		c.CacheScope = cachePublic
	}
	return c
}

// hint returns the caching hint for a method's results. filtered says that they
// depend on who asks.
func (s *Server) hint(method string, filtered bool) mcp.Cacheable {
	h := s.options.CacheHints[method]
	if filtered {
		h.Public = false
	}
	return h.cacheable()
}

// readHint returns the caching hint for a resource: what its handler said, or
// else its registration, or else the method's. A filter keeps it private, and a
// retry that brought input is not to be kept at all.
func (c *Call) readHint(said mcp.Cacheable, item *CacheHint) mcp.Cacheable {
	if c.isRetry() {
		return CacheHint{}.cacheable()
	}
	filtered := c.reg.filters.resource != nil
	hint := c.server.hint(methodReadResource, filtered)
	if item != nil {
		hint = CacheHint{TTL: item.TTL, Public: item.Public && !filtered}.cacheable()
	}
	if said.TTLMs > 0 {
		hint.TTLMs = said.TTLMs
	}
	if said.CacheScope == cachePrivate || said.CacheScope == cachePublic && !filtered {
		hint.CacheScope = said.CacheScope
		hint.TTLMs = max(said.TTLMs, 0)
	}
	return hint
}

// isRetry tells whether the request brings input that was asked for.
func (c *Call) isRetry() bool {
	_, responses := jsonrpc.Get(c.params.all, "inputResponses")
	_, state := jsonrpc.Get(c.params.all, "requestState")
	return responses || state
}

// appendCache appends the caching hints of the stateless era.
//
// Specification: server/utilities/caching (2026-07-28).
func (r *revision) appendCache(o *object, cache mcp.Cacheable) {
	if !r.stateless {
		return
	}
	o.key("ttlMs")
	o.b = appendNumber(o.b, float64(max(cache.TTLMs, 0)))
	o.key("cacheScope")
	if cache.CacheScope == cachePublic {
		o.b = append(o.b, `"public"`...)
		return
	}
	o.b = append(o.b, `"private"`...)
}
