package streamable

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS lets pages of the allowed origins call the handler from a browser. The
// zero value works. Which origins are allowed is a matter of
// [Options.AllowedOrigins]: there is one list, for this and for the check of origins.
type CORS struct {
	// Headers are request headers that pages may send besides those of MCP,
	// Authorization and Content-Type.
	Headers []string
	// Expose are response headers that pages may read besides those of MCP.
	Expose []string
	// MaxAge is how long a browser may remember a preflight. 0: its default.
	MaxAge time.Duration
}

// Headers that a page's MCP client sends, in lower case as preflights have them;
// those that begin with mcp-param- come on top.
var corsHeaders = []string{
	"accept", "authorization", "content-type", "last-event-id",
	"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id",
}

const corsExpose = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After"

// serve sets the response headers of an allowed origin, and answers preflights. It
// reports whether the request was answered.
func (c *CORS) serve(w http.ResponseWriter, r *http.Request, origin string, present bool) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	if !present {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", strings.Join(append([]string{corsExpose}, c.Expose...), ", "))
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if allowed := c.allowed(r.Header["Access-Control-Request-Headers"]); len(allowed) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	}
	if c.MaxAge > 0 {
		h.Set("Access-Control-Max-Age", strconv.Itoa(int(c.MaxAge.Seconds())))
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowed are the headers that were asked for and may be sent. Tools may have
// headers of any name under Mcp-Param-, which no fixed list can have.
func (c *CORS) allowed(asked []string) []string {
	var allowed []string
	for _, value := range asked {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if slices.Contains(corsHeaders, name) || strings.HasPrefix(name, "mcp-param-") ||
				slices.ContainsFunc(c.Headers, func(more string) bool { return strings.EqualFold(more, name) }) {
				allowed = append(allowed, name)
			}
		}
	}
	return allowed
}
