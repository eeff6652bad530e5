package streamable

import (
	"context"
	"net/http"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
)

// serveSingle serves one POST of the handshake era without a session: as if a
// session had been opened for it alone, by a client without capabilities.
func (h *Handler) serveSingle(p *post) {
	if p.fault != nil {
		p.refuse(http.StatusBadRequest, p.fault.Code, p.fault.Message)
		return
	}
	request := p.batch || p.msg.Kind == jsonrpc.KindRequest
	if request {
		if limit := int64(h.options.MaxInFlight); h.inFlight.Add(1) > limit && limit > 0 {
			h.inFlight.Add(-1)
			h.refuseBusy(p, "too many requests in flight")
			return
		}
		defer h.inFlight.Add(-1)
	}
	o := server.SessionOptions{NoStateless: true}
	if p.msg.Method != "initialize" {
		o.Version = p.version
		if o.Version == "" {
			o.Version = h.assumed()
		}
	}
	// What the handler's context holds comes with the request; see post.extra.
	ss := h.server.Open(context.Background(), o)
	defer ss.Close(cancellation.Disconnect, "the request has ended")
	rp := newReply(h, p, false)
	if p.batch {
		ss.Receive(p.body, rp, &rp.extra, rp.start)
	} else {
		ss.Accept(&p.msg, nil, rp, &rp.extra, rp.start)
	}
	if !request {
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	rp.serve()
}

// assumed is the revision of a request that names none.
//
// Specification: basic/transports (2025-11-25), protocol version header.
func (h *Handler) assumed() string {
	newest := ""
	for _, v := range h.versions {
		if v == server.Version20250326 {
			return v
		}
		if newest == "" && !isStateless(v) {
			newest = v
		}
	}
	return newest
}
