package server

import (
	"encoding/base64"
	"slices"
	"sync"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pages caches the pages of lists, and their encodings, for as long as a
// registry lives: every client asks for the same ones.
type pages struct {
	lists   sync.Map // cursor name → *mcp.ListToolsResult
	encoded sync.Map // encodedKey → []byte
}

// encodedKey names a page as one revision has it.
type encodedKey struct {
	page any
	rev  *revision
}

// tools returns the page of tools that follow the name after.
func (p *pages) tools(s *Server, r *registry, after string) (*mcp.ListToolsResult, error) {
	from := 0
	if after != "" {
		i, found := slices.BinarySearch(r.toolNames, after)
		if from = i; found {
			from++
		}
	}
	// The key is the position, so that cursors cannot fill the cache.
	if page, ok := p.lists.Load(from); ok {
		return page.(*mcp.ListToolsResult), nil
	}
	to := min(from+s.options.PageSize, len(r.toolNames))
	page := &mcp.ListToolsResult{Tools: make([]*mcp.Tool, 0, to-from), Cacheable: mcp.Cacheable{CacheScope: cachePrivate}}
	for _, name := range r.toolNames[from:to] {
		page.Tools = append(page.Tools, r.tools[name].definition)
	}
	if to < len(r.toolNames) {
		page.NextCursor = encodeCursor(r.toolNames[to-1])
	}
	stored, _ := p.lists.LoadOrStore(from, page)
	return stored.(*mcp.ListToolsResult), nil
}

// own tells whether a result is one of the cached pages, not a copy that
// middleware made.
func (p *pages) own(page *mcp.ListToolsResult) (own bool) {
	p.lists.Range(func(_, v any) bool {
		own = v == page
		return !own
	})
	return own
}

// A cursor is the name of the last item of the page before, so that it stays
// good when items come and go. To clients it is opaque.

func encodeCursor(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("n:" + name))
}

// cursorOf returns the name that the cursor in params stands for; "" without one.
//
// Specification: server/utilities/pagination: invalid cursors are -32602.
func cursorOf(params []byte) (after string, err error) {
	raw, ok := jsonrpc.Get(params, "cursor")
	if !ok {
		return "", nil
	}
	text, ok := jsonrpc.Unquote(raw)
	if !ok {
		return "", invalidParams("params.cursor must be a string")
	}
	if text == "" {
		return "", nil
	}
	decoded, e := base64.RawURLEncoding.DecodeString(text)
	if e != nil || len(decoded) < 3 || string(decoded[:2]) != "n:" {
		return "", invalidParams("params.cursor is not one that this server gave out")
	}
	return string(decoded[2:]), nil
}
