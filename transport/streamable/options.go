package streamable

import (
	"log/slog"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configure a Handler. A nil *Options, like the zero value, is the
// default; every field says what its zero means. They are read by NewHandler
// and not changed after.
type Options struct {
	// Response says in which form requests are answered. Zero: Auto.
	Response Response

	// StreamAfter is how long a call may stay silent before its response is
	// committed as an event stream and the headers are sent, so that the client can
	// drop it. 0: 500 ms; negative: never.
	StreamAfter time.Duration

	// KeepAlive is how long a stream may be quiet before a comment is sent on it.
	// 0: 15 s; negative: none are sent.
	KeepAlive time.Duration

	// WriteTimeout bounds each write to a client that does not read; its
	// connection is then given up. With it an event stream may last longer than the
	// http.Server's WriteTimeout; other responses may not. 0: 15 s; negative: no
	// bound but the http.Server's.
	WriteTimeout time.Duration

	// DisconnectGrace is how long a request of a handshake-era session goes on
	// after its stream was dropped; unless the client resumes it within that
	// time it is cancelled with origin Disconnect. 0: it is never cancelled by
	// that, as the specification wants it. Without a session, and in the
	// stateless era, a dropped response cancels at once in any case.
	DisconnectGrace time.Duration

	// NoSessions serves the handshake era without sessions: each request stands for
	// itself, there are no streams to listen on and nothing to resume, and the
	// client cannot be asked for input.
	NoSessions bool

	// MaxSessions bounds the sessions of the handshake era. At the bound the one
	// that was idle for the longest time is ended for a new one; those with a
	// running request or an open stream are never touched. 0: 10 000; negative: no bound.
	MaxSessions int

	// SessionIdle is how long a session may be without any request, running handler
	// or open stream before it is ended. 0: 30 minutes; negative: for ever.
	SessionIdle time.Duration

	// EventStore keeps the events of handshake-era streams for clients that
	// resume them. nil: a bounded store in memory, see [NewRingStore].
	EventStore mcp.EventStore

	// MaxBody bounds a request's body in bytes. 0: 4 MiB; negative: no bound.
	MaxBody int64

	// BodyTimeout is how long the body of a request may take to arrive; then it is
	// answered 400 and the connection closed, over HTTP/2 only the request's stream. An http.Server with a ReadTimeout of its
	// own is left to that. 0: 30 s; negative: no bound.
	BodyTimeout time.Duration

	// MaxInFlight bounds the requests of the stateless era that run at the same
	// time; a further one is answered 503. 0: 16384; negative: no bound. Requests of
	// a session are bounded by the server's own option.
	MaxInFlight int

	// AllowedOrigins lists what the Origin header may say besides the server's
	// own origin and loopback ones, such as https://app.example. "*" allows all.
	AllowedOrigins []string

	// AllowedHosts lists what the Host header may say on loopback connections
	// besides loopback names, with or without a port: the name under which a
	// reverse proxy on the same machine passes requests on. "*" allows all.
	AllowedHosts []string

	// CORS lets browsers call from the allowed origins. nil: preflights are
	// answered 405 and no CORS headers are sent.
	CORS *CORS

	// Auth demands a bearer token. nil: none is demanded; a token that
	// middleware of the official SDK has verified is honoured all the same.
	Auth *Auth

	// Logger gets what operators should know. nil: the server's.
	Logger *slog.Logger
}

// Response is the form in which requests are answered.
type Response uint8

const (
	// Auto answers with plain JSON, unless something is sent before the answer
	// or the answer takes longer than Options.StreamAfter: then with an event stream.
	Auto Response = iota
	// JSON answers with plain JSON. What a handler sends before its answer is
	// dropped, and it cannot ask the client. A client that accepts only
	// event streams, and subscriptions, get streams all the same.
	JSON
	// Stream answers with an event stream, as long as the client accepts one. In a
	// session the stream begins with the request, so that it can be resumed whatever
	// happens to the connection.
	Stream
)

const (
	defaultStreamAfter  = 500 * time.Millisecond
	defaultKeepAlive    = 15 * time.Second
	defaultWriteTimeout = 15 * time.Second
	defaultMaxSessions  = 10_000
	defaultSessionIdle  = 30 * time.Minute
	defaultMaxBody      = 4 << 20
	defaultBodyTimeout  = 30 * time.Second
	defaultMaxInFlight  = 16384
)

// withDefaults returns a copy in which every field holds what is in force.
func (o *Options) withDefaults(s *server.Server) Options {
	var p Options
	if o != nil {
		p = *o
	}
	p.StreamAfter = orDefault(p.StreamAfter, defaultStreamAfter)
	p.KeepAlive = orDefault(p.KeepAlive, defaultKeepAlive)
	p.WriteTimeout = orDefault(p.WriteTimeout, defaultWriteTimeout)
	p.MaxSessions = orDefault(p.MaxSessions, defaultMaxSessions)
	p.SessionIdle = orDefault(p.SessionIdle, defaultSessionIdle)
	p.MaxBody = orDefault(p.MaxBody, defaultMaxBody)
	p.BodyTimeout = orDefault(p.BodyTimeout, defaultBodyTimeout)
	p.MaxInFlight = orDefault(p.MaxInFlight, defaultMaxInFlight)
	if p.EventStore == nil {
		p.EventStore = NewRingStore(0)
	}
	if p.Logger == nil {
		p.Logger = s.Logger()
	}
	return p
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// keepAlive is how long to wait before a look at a quiet stream.
func (o *Options) keepAlive() time.Duration {
	if o.KeepAlive <= 0 {
		return time.Hour
	}
	return o.KeepAlive
}
