package skills

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxURI bounds the URIs that errors repeat, in bytes.
const maxURI = 8 << 10

// methods are what the extension adds. Clients need not declare it: they ask after
// the server has.
func (l *library) methods() []server.ExtensionMethod {
	methods := []server.ExtensionMethod{
		{Name: "skills/list", Undeclared: true, Handler: l.serveList},
		{Name: "skills/get", Undeclared: true, Handler: l.serveGet},
	}
	if l.options.DirectoryRead {
		methods = append(methods, server.ExtensionMethod{Name: "resources/directory/read", Undeclared: true, Handler: l.serveDirectory})
	}
	return methods
}

// hints are the caching hints of a result.
type hints struct {
	TTLMs      int64  `json:"ttlMs"`
	CacheScope string `json:"cacheScope"`
}

func (l *library) hints() hints {
	h := hints{TTLMs: max(l.options.Cache.TTL.Milliseconds(), 0), CacheScope: "private"}
	if l.options.Cache.Public && !l.server.FiltersResources() {
		h.CacheScope = "public"
	}
	return h
}

// serveList serves skills/list.
func (l *library) serveList(ctx context.Context, req *servercontext.Request) (any, error) {
	behind, err := cursorOf(req)
	if err != nil {
		return nil, err
	}
	c, err := l.now(ctx)
	if err != nil {
		return nil, err
	}
	result := struct {
		Skills     []json.RawMessage `json:"skills"`
		NextCursor string            `json:"nextCursor,omitempty"`
		hints
	}{Skills: []json.RawMessage{}, hints: l.hints()}
	var last string
	for _, s := range c.skills[after(c.skills, behind, uriOfSkill):] {
		if !l.server.SeesResource(ctx, req, s.uri) {
			continue
		}
		if len(result.Skills) == l.options.PageSize {
			result.NextCursor = cursorFor(last)
			break
		}
		result.Skills = append(result.Skills, s.entry)
		last = s.uri
	}
	return result, nil
}

// serveGet serves skills/get.
func (l *library) serveGet(ctx context.Context, req *servercontext.Request) (any, error) {
	uri, err := uriParam(req)
	if err != nil {
		return nil, err
	}
	c, err := l.now(ctx)
	if err != nil {
		return nil, err
	}
	s := c.find(uri)
	if s == nil || !l.server.SeesResource(ctx, req, uri) {
		return nil, invalidParams(uri, fmt.Sprintf("no skill is served at %.200q", uri))
	}
	return struct {
		Skill json.RawMessage `json:"skill"`
		hints
	}{s.entry, l.hints()}, nil
}

// serveDirectory serves resources/directory/read.
func (l *library) serveDirectory(ctx context.Context, req *servercontext.Request) (any, error) {
	uri, err := uriParam(req)
	if err != nil {
		return nil, err
	}
	behind, err := cursorOf(req)
	if err != nil {
		return nil, err
	}
	c, err := l.now(ctx)
	if err != nil {
		return nil, err
	}
	children := c.children(uri)
	if children == nil || !l.server.SeesResource(ctx, req, uri) {
		return nil, invalidParams(uri, fmt.Sprintf("%.200q is no directory that is served", uri))
	}
	result := struct {
		Resources  []*mcp.Resource `json:"resources"`
		NextCursor string          `json:"nextCursor,omitempty"`
	}{Resources: []*mcp.Resource{}}
	for _, r := range children[after(children, behind, func(r *mcp.Resource) string { return r.URI }):] {
		if !l.server.SeesResource(ctx, req, r.URI) {
			continue
		}
		if n := len(result.Resources); n == l.options.PageSize {
			result.NextCursor = cursorFor(result.Resources[n-1].URI)
			break
		}
		result.Resources = append(result.Resources, r)
	}
	return result, nil
}

func uriParam(req *servercontext.Request) (string, error) {
	raw, _ := jsonrpc.Get(req.Params(), "uri")
	uri, ok := jsonrpc.Unquote(raw)
	if !ok {
		return "", invalidParams("", "params.uri is required and must be a string")
	}
	return uri, nil
}

// A cursor is the URI of the last item of the page before, so that it stays good when
// items come and go. To clients it is opaque.

func cursorFor(uri string) string { return base64.RawURLEncoding.EncodeToString([]byte("u:" + uri)) }

// cursorOf returns the URI that the cursor in params stands for, "" for the first page.
//
// Specification: server/utilities/pagination: invalid cursors are -32602.
func cursorOf(req *servercontext.Request) (string, error) {
	raw, ok := jsonrpc.Get(req.Params(), "cursor")
	if !ok || string(raw) == "null" {
		return "", nil
	}
	text, _ := jsonrpc.Unquote(raw)
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(decoded) < 3 || string(decoded[:2]) != "u:" {
		return "", invalidParams("", "params.cursor is not one that this server gave out")
	}
	return string(decoded[2:]), nil
}
