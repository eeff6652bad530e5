package streamable

import (
	"fmt"
	"net/http"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// post is one POST whose body was read.
type post struct {
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	batch   bool            // the body is an array; msg is empty then
	msg     jsonrpc.Message // the message scanned
	fault   *jsonrpc.Error  // what is wrong with it, nil if nothing is
	accepts accepts
	version string // what the version header says, "" without one
	token   *auth.TokenInfo
	reply   reply // made by newReply, for requests without a session
	slow    alarm // rings when the body takes too long
}

// servePost serves one message, or a batch, from a client.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	if !jsonContent(r.Header) {
		h.unread(w, r)
		refuse(w, http.StatusUnsupportedMediaType, "the Content-Type must be application/json in UTF-8")
		return
	}
	p := &post{w: w, r: r, accepts: acceptsOf(r.Header)}
	if !p.accepts.json && !p.accepts.stream {
		h.unread(w, r)
		refuse(w, http.StatusNotAcceptable, "the Accept header must list application/json and text/event-stream")
		return
	}
	if !h.readBody(p) {
		return
	}
	if p.batch = jsonrpc.IsBatch(p.body); !p.batch {
		p.fault = jsonrpc.Scan(p.body, jsonrpc.Limits{Depth: h.server.MaxDepth()}, &p.msg)
	}
	// What running requests wait for may still come in.
	if h.refusing() && (p.batch || p.fault != nil || p.msg.Kind == jsonrpc.KindRequest) {
		refuseDraining(w)
		return
	}
	version, ok := single(r.Header[headerVersion])
	if !ok {
		p.refuse(http.StatusBadRequest, mcp.CodeHeaderMismatch, "the MCP-Protocol-Version header is given twice")
		return
	}
	p.version = version
	p.token = auth.TokenInfoFromContext(r.Context())
	if a := h.options.Auth; a != nil && !a.permits(h.server, p) {
		return
	}
	h.dispatch(p)
}

// dispatch decides which era a message belongs to: the stateless one by its header
// or its own _meta, else the one of the handshake.
//
// Specification: basic/versioning (2026-07-28), dual-era servers.
func (h *Handler) dispatch(p *post) {
	meta := metaOf(&p.msg)
	initialize := p.msg.Kind == jsonrpc.KindRequest && p.msg.Method == "initialize"
	if h.stateless {
		if isStateless(p.version) || meta.speaks || p.msg.Method == "server/discover" {
			h.serveStateless(p, meta)
			return
		}
		if !h.handshake && initialize {
			// A client of the other era should learn which versions there are.
			raw, _ := p.msg.Param("protocolVersion")
			asked, _ := jsonrpc.Unquote(raw)
			h.refuseVersion(p, asked)
			return
		}
		if !h.handshake && p.version == "" {
			p.refuse(http.StatusBadRequest, mcp.CodeHeaderMismatch, "the MCP-Protocol-Version header is required")
			return
		}
	}
	if p.version != "" && !initialize && !h.serves(p.version) {
		h.refuseVersion(p, p.version)
		return
	}
	switch {
	case h.options.NoSessions:
		h.serveSingle(p)
	case len(p.r.Header[headerSession]) > 0:
		h.serveSession(p)
	case initialize && p.fault == nil:
		h.openSession(p)
	case p.fault != nil:
		p.refuse(http.StatusBadRequest, p.fault.Code, p.fault.Message)
	default:
		p.refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the Mcp-Session-Id header is required; initialize opens a session")
	}
}

// serves tells whether a version may be named by the header of a request.
func (h *Handler) serves(version string) bool {
	for _, v := range h.versions {
		if v == version {
			return true
		}
	}
	return false
}

// refuseVersion answers a request of a revision that is not served.
func (h *Handler) refuseVersion(p *post, asked string) {
	if !h.stateless {
		// The error of the stateless era would tell a client that it may try that era.
		p.refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, fmt.Sprintf("unsupported protocol version %q", bounded(asked)))
		return
	}
	refuseID(p.w, http.StatusBadRequest, p.answerable(), mcp.CodeUnsupportedProtocolVersion,
		"unsupported protocol version", h.supported(asked))
}

func (h *Handler) supported(asked string) []byte {
	b := []byte(`{"supported":[`)
	for i, v := range h.versions {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(b, v)
	}
	b = append(b, `],"requested":`...)
	b = jsonrpc.AppendString(b, bounded(asked))
	return append(b, '}')
}

// answerable is the id that an error is for: a request's, or none.
func (p *post) answerable() jsonrpc.ID {
	if p.msg.Kind == jsonrpc.KindResponse || p.msg.Kind == jsonrpc.KindErrorResponse {
		return jsonrpc.ID{} // the id is the server's own
	}
	return p.msg.ID
}

func (p *post) refuse(status int, code int, message string) {
	refuseID(p.w, status, p.answerable(), code, message, nil)
}

// extra is what the server is told about the message beyond its bytes.
func (p *post) extra() server.Extra {
	return server.Extra{Context: p.r.Context(), TokenInfo: p.token, Header: p.r.Header}
}
