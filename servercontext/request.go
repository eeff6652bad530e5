package servercontext

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/requestkey"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options are the facts about a request. A server fills them in for each
// request it serves; a test passes the ones its handler looks at to [New]. The
// zero value is a request without id, client, session or progress token.
type Options struct {
	// ID is the request's id as JSON text, such as 7 or "7"; "" for a notification.
	ID string
	// Method is the protocol's method, such as tools/call.
	Method string
	// Params are the raw params; nil when there were none. Read only.
	Params json.RawMessage
	// Meta is the raw _meta object of the params; nil when there was none. Read only.
	Meta json.RawMessage
	// ProtocolVersion is the revision this request is served in.
	ProtocolVersion string
	// Stateless says that the revision has no handshake (2026-07-28 and newer).
	Stateless bool
	// Client is who the handshake said the client is; nil: what Meta says.
	Client *Client
	// Session is nil for requests that belong to none.
	Session *Session
	// TokenInfo is what the bearer token said, where the transport checks one.
	TokenInfo *auth.TokenInfo
	// Header holds the HTTP request's header, nil elsewhere. Read only.
	Header http.Header
	// Token is the request's cancellation token; nil: never cancelled.
	Token *cancellation.Token
	// Host does the sending; nil: nothing is sent and there is no client to ask.
	Host Host
}

// Request is one request (or notification) that a server is serving. See the
// package documentation for its rules.
type Request struct {
	o Options // set by New, never changed

	meta   func() mcp.Meta // decodes o.Meta once, on demand
	client func() *Client  // decodes the client's description once, on demand
}

// New returns a request with these facts. Servers call it; so do tests of
// handlers, which then need no server.
func New(o Options) *Request {
	r := &Request{o: o}
	if o.Host == nil {
		r.o.Host = nobody{id: o.ID}
	}
	return r
}

// Through returns a request with the same facts whose sending is done by another
// host, under another token. Servers use it for handlers that outlive the request they
// were started for.
func (r *Request) Through(host Host, token *cancellation.Token) *Request {
	o := *r.options()
	o.Host, o.Token = host, token
	return New(o)
}

// NewContext returns a context in which [FromContext] finds r.
func NewContext(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestkey.Key{}, r)
}

// FromContext returns the request that ctx belongs to. Without one it returns
// nil, which is a valid Request, and false.
func FromContext(ctx context.Context) (*Request, bool) {
	r, ok := ctx.Value(requestkey.Key{}).(*Request)
	return r, ok
}

var none = New(Options{})

func (r *Request) options() *Options {
	if r == nil {
		return &none.o
	}
	return &r.o
}

// ID is the request's id as JSON text, exactly as the client sent it: 7, "7".
// It is "" for a notification. In the stateless era a handler that was given input
// by a retry of its request goes on with the retry's id.
func (r *Request) ID() string { return r.options().Host.RequestID() }

// Method is the protocol's method, such as tools/call.
func (r *Request) Method() string { return r.options().Method }

// Params are the raw params, nil when there were none. They must not be changed.
func (r *Request) Params() json.RawMessage { return r.options().Params }

// ProtocolVersion is the protocol revision that this request is served in.
func (r *Request) ProtocolVersion() string { return r.options().ProtocolVersion }

// Stateless says whether that revision has no handshake and no sessions, which
// is so from 2026-07-28 on.
func (r *Request) Stateless() bool { return r.options().Stateless }

// Session is the session the request came in, nil when it came in none.
func (r *Request) Session() *Session { return r.options().Session }

// TokenInfo is what the request's bearer token said, nil where the transport
// has no authorization.
func (r *Request) TokenInfo() *auth.TokenInfo { return r.options().TokenInfo }

// Header is the HTTP request's header, nil on other transports. It must not be changed.
func (r *Request) Header() http.Header { return r.options().Header }

// Token is the request's cancellation token. It is nil, which is a valid token
// that is never cancelled, for requests that cannot be cancelled.
func (r *Request) Token() *cancellation.Token { return r.options().Token }

// Cancelled reports whether the request was cancelled. It costs one atomic read.
func (r *Request) Cancelled() bool { return r.options().Token.Cancelled() }

// Progress reports that done of total units are finished and is a checkpoint
// at the same time: it returns the request's [cancellation.Error] once the
// request was cancelled, else nil.
//
// Nothing is sent unless the client asked for progress. A report that does not
// increase done is dropped, as the specification wants strictly increasing
// values; reports in quick succession are merged into the last one, which
// is always sent before the result. A total of 0 means unknown. message may be "".
//
// Specification: basic/utilities/progress (2025-11-25), basic/patterns/progress (2026-07-28).
func (r *Request) Progress(ctx context.Context, done, total float64, message string) error {
	if err := cancellation.Checkpoint(ctx); err != nil {
		return err
	}
	r.options().Host.Progress(done, total, message)
	return nil
}

// SetTimeout limits the rest of this request to d, as the server's and the
// tool's own limits do: when it expires, the token fires with origin Timeout
// and the client is answered with an error. The server's hard maximum still
// holds. d of 0 or less removes the limit.
func (r *Request) SetTimeout(d time.Duration) { r.options().Host.SetTimeout(d) }

// CloseStream closes the response stream of a handshake-era HTTP request
// before the answer is there; the client comes back after retry and resumes. It
// returns [ErrNotSupported] on transports that cannot do that.
//
// Specification: basic/transports (2025-11-25), server-initiated disconnection.
func (r *Request) CloseStream(retry time.Duration) error {
	return r.options().Host.CloseStream(retry)
}

// ResourceUpdated tells the subscribers of uri that the resource has changed.
func (r *Request) ResourceUpdated(uri string) { r.options().Host.ResourceUpdated(uri) }

// Meta is the request's _meta. Nil when there was none; it must not be changed.
func (r *Request) Meta() mcp.Meta {
	if r == nil || len(r.o.Meta) == 0 {
		return nil
	}
	return r.lazy().meta()
}

func (r *Request) lazy() *Request {
	// The two closures are made when first needed: most handlers need neither.
	lazyMu.Lock()
	defer lazyMu.Unlock()
	if r.meta == nil {
		r.meta = sync.OnceValue(func() mcp.Meta { return decodeMeta(r.o.Meta) })
		r.client = sync.OnceValue(func() *Client {
			if r.o.Client != nil {
				return r.o.Client
			}
			return clientFromMeta(r.o.Meta)
		})
	}
	return r
}

// lazyMu guards the making of every Request's closures; it is held for two
// allocations only.
var lazyMu sync.Mutex
