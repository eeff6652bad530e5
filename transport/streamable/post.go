package streamable

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

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
		refuse(w, http.StatusUnsupportedMediaType, "the Content-Type must be application/json in UTF-8")
		return
	}
	p := &post{w: w, r: r, accepts: acceptsOf(r.Header)}
	if !p.accepts.json && !p.accepts.stream {
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

// firstRead is how much of a body is read before more memory is given to it.
const firstRead = 64 << 10

// errTooLarge is why a body over Options.MaxBody is not read to its end.
var errTooLarge = errors.New("streamable: the body is too large")

// readBody reads the whole body into a buffer of its own, which the request
// keeps. It answers and returns false when there is no whole body to be had.
func (h *Handler) readBody(p *post) bool {
	err := h.readWatched(p)
	switch {
	case errors.Is(err, errTooLarge):
		h.tooLarge(p)
	case err != nil:
		h.incomplete(p, err)
	}
	return err == nil
}

// readWatched reads the body within Options.BodyTimeout.
func (h *Handler) readWatched(p *post) error {
	whole := false
	defer func() { h.calm(p, whole) }() // also when a Body of somebody's middleware panics
	if h.options.BodyTimeout > 0 && p.r.ContentLength != 0 {
		h.bodies.set(&p.slow, p)
	}
	err := p.read(h.options.MaxBody)
	whole = err == nil
	return err
}

// read reads the body, at most limit bytes; 0 or less: no limit.
func (p *post) read(limit int64) error {
	n := p.r.ContentLength
	if limit > 0 && n > limit {
		return errTooLarge
	}
	size := int64(512)
	if n >= 0 {
		size = min(n, firstRead) // a length alone must not cost memory
	}
	body := make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			if int64(len(body)) == n {
				break
			}
			grown := int64(2 * cap(body))
			if n >= 0 {
				grown = min(grown, n)
			}
			body = append(make([]byte, 0, max(grown, 512)), body...)
		}
		got, err := p.r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+got]
		if limit > 0 && int64(len(body)) > limit {
			return errTooLarge
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	p.body = body
	return nil
}

// ring ends the reading of a body that takes too long: who sends a byte now and then must
// not hold a connection for ever.
func (p *post) ring() { p.readUntil(time.Now()) }

// calm ends the watch over the body. What follows a whole one on the connection may take its
// time; what is left of another one, which net/http may want to read, may not.
func (h *Handler) calm(p *post, whole bool) {
	switch rang := p.slow.unset(); {
	case whole && rang:
		p.readUntil(time.Time{})
	case !whole && !rang && h.options.BodyTimeout > 0:
		p.readUntil(time.Now().Add(h.options.BodyTimeout))
	}
}

// readUntil sets the deadline for reading, unless one of the http.Server is in force, which
// is not ours to change.
func (p *post) readUntil(t time.Time) {
	if srv, ok := p.r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ReadTimeout > 0 {
		return
	}
	_ = http.NewResponseController(p.w).SetReadDeadline(t) // or not supported: then the body may take its time
}

// hangUp ends the connection with the response: what is left of the body must not be read,
// nor taken for a request. Over HTTP/2 it is a stream of its own, and ends alone.
func (p *post) hangUp() {
	if p.r.ProtoMajor == 1 {
		p.w.Header().Set("Connection", "close")
	}
}

func (h *Handler) tooLarge(p *post) {
	p.hangUp()
	refuse(p.w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", h.options.MaxBody))
}

// incomplete deals with a client that went away, or stalled, in the middle of its message.
func (h *Handler) incomplete(p *post, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) { // a bound of somebody else's middleware
		refuse(p.w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
		return
	}
	h.options.Logger.Debug("request body ended early", "error", err)
	p.hangUp()
	refuse(p.w, http.StatusBadRequest, "the body is incomplete")
}
