package streamable

import (
	"net/http"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveStateless serves a message of the stateless era. It makes no session: a
// request is served in the scope that all of them share, where none can name
// another.
//
// Specification: basic/transports/streamable-http (2026-07-28).
func (h *Handler) serveStateless(p *post, meta metadata) {
	switch {
	case p.batch:
		p.refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "batches are not part of this protocol revision")
	case p.fault != nil:
		p.refuse(http.StatusBadRequest, p.fault.Code, p.fault.Message)
	case p.msg.Kind == jsonrpc.KindNotification:
		h.acceptStatelessNotification(p)
	case p.msg.Kind != jsonrpc.KindRequest:
		p.refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the server sends no requests in this protocol revision, so there is nothing to respond to")
	default:
		h.serveStatelessRequest(p, meta)
	}
}

// acceptStatelessNotification takes a notification without a look at its headers, for
// which the revision has no rules. A cancel touches nobody: there are no ids to
// name in the scope that it comes to.
func (h *Handler) acceptStatelessNotification(p *post) {
	x := p.extra()
	x.Stateless = true
	h.server.Stateless().Accept(&p.msg, nil, &reply{}, &x, nil)
	p.w.WriteHeader(http.StatusAccepted)
}

func (h *Handler) serveStatelessRequest(p *post, meta metadata) {
	if wrong := h.checkHeaders(p, meta); wrong != "" {
		p.refuse(http.StatusBadRequest, mcp.CodeHeaderMismatch, wrong)
		return
	}
	if !h.serves(p.version) {
		h.refuseVersion(p, p.version)
		return
	}
	if limit := int64(h.options.MaxInFlight); h.inFlight.Add(1) > limit && limit > 0 {
		h.inFlight.Add(-1)
		h.refuseBusy(p, "too many requests in flight")
		return
	}
	defer h.inFlight.Add(-1)
	rp := newReply(h, p, true)
	rp.extra.Stateless = true
	h.server.Stateless().Accept(&p.msg, nil, rp, &rp.extra, rp.start)
	rp.serve()
}

func (h *Handler) refuseBusy(p *post, message string) {
	p.w.Header().Set("Retry-After", "1")
	p.refuse(http.StatusServiceUnavailable, jsonrpc.CodeInternalError, message)
}
