package streamable

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/auth"
)

// Handler serves an MCP server over HTTP, on one path, in every protocol
// revision at once. It is an http.Handler; see [NewHandler].
type Handler struct {
	server    *server.Server
	options   Options      // with defaults in force; never changed after NewHandler
	versions  []string     // what the server serves, newest first; never changed
	handshake bool         // one of them has a handshake; never changed
	stateless bool         // one of them has none; never changed
	serve     http.Handler // what comes after the checks of origin and token; never changed

	inFlight atomic.Int64 // requests of the stateless era that are being served
	draining atomic.Bool  // set once, by Shutdown or Close: new requests get 503
	table    table        // the sessions

	bodies   alarms // a body has taken Options.BodyTimeout
	writes   alarms // a write has taken Options.WriteTimeout
	silences alarms // a call in a session was silent for Options.StreamAfter
	lulls    alarms // a call without a session has taken watchAfter

	shutdown sync.Once     // starts the drain
	drained  chan struct{} // closed when it has ended
	drainErr error         // how; written before drained is closed
}

// NewHandler returns a handler that serves s. o may be nil.
//
//	http.Handle("/mcp", streamable.NewHandler(s, nil))
//
// The http.Server's ReadHeaderTimeout and ReadTimeout are respected; its
// WriteTimeout is replaced by [Options.WriteTimeout] on event streams, which may
// last for any time.
func NewHandler(s *server.Server, o *Options) *Handler {
	h := &Handler{server: s, options: o.withDefaults(s), versions: s.Versions(), drained: make(chan struct{})}
	h.handshake = slices.ContainsFunc(h.versions, func(v string) bool { return !isStateless(v) })
	h.stateless = slices.ContainsFunc(h.versions, isStateless)
	h.table.init(h.options.MaxSessions, h.options.SessionIdle)
	h.bodies.init(h.options.BodyTimeout)
	h.writes.init(h.options.WriteTimeout)
	h.silences.init(h.options.StreamAfter)
	h.lulls.init(watchAfter)
	h.serve = http.HandlerFunc(h.route)
	if a := h.options.Auth; a != nil {
		h.serve = a.wrap(h.serve, h.options.BodyTimeout)
	}
	return h
}

// ServeHTTP checks where a request comes from and serves it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.hostAllowed(r) {
		h.unread(w, r)
		refuse(w, http.StatusForbidden, "the Host header names no host of this server")
		return
	}
	origin, present, ok := h.originOf(r)
	if !ok {
		h.unread(w, r)
		refuse(w, http.StatusForbidden, "requests from this origin are not allowed")
		return
	}
	if h.options.CORS != nil && h.options.CORS.serve(w, r, origin, present) {
		h.unread(w, r)
		return
	}
	h.serve.ServeHTTP(w, r)
}

// route serves a request that may come in.
func (h *Handler) route(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r)
	case http.MethodGet:
		if !h.hasSession(r) {
			h.unread(w, r)
			methodNotAllowed(w, http.MethodPost)
			return
		}
		if h.skipBody(w, r) {
			h.serveGet(w, r)
		}
	case http.MethodDelete:
		if !h.hasSession(r) {
			h.unread(w, r)
			methodNotAllowed(w, http.MethodPost)
			return
		}
		if h.skipBody(w, r) {
			h.serveDelete(w, r)
		}
	default:
		allow := http.MethodPost
		if h.handshake && !h.options.NoSessions {
			allow = "GET, POST, DELETE"
		}
		h.unread(w, r)
		methodNotAllowed(w, allow)
	}
}

// hasSession tells whether a GET or DELETE names a session. The stateless era has
// neither sessions nor these methods, and ignores the header that names one.
//
// Specification: basic/transports/streamable-http (2026-07-28), earlier revisions.
func (h *Handler) hasSession(r *http.Request) bool {
	if h.options.NoSessions || !h.handshake {
		return false
	}
	if v := r.Header[headerVersion]; len(v) == 1 && isStateless(trim(v[0])) {
		return false
	}
	return len(r.Header[headerSession]) > 0
}

// refusing tells whether new work is refused because of a shutdown.
func (h *Handler) refusing() bool { return h.draining.Load() || h.server.Draining() }

// principalOf names who has authenticated, "" for nobody.
func principalOf(info *auth.TokenInfo) string {
	if info == nil {
		return ""
	}
	return info.UserID
}
