package server

import (
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configure a Server. A nil *Options, like the zero value, is the
// default; every field says what its zero means. They are read by New
// and not changed after.
type Options struct {
	// Instructions tell a model how to use this server; "" sends none.
	Instructions string

	// Capabilities replace what the server would advertise by what is
	// registered; nil: follow what is registered. A method whose capability is
	// not advertised is answered -32601.
	Capabilities *mcp.ServerCapabilities

	// NoLogging leaves out the logging capability. Without it nothing that handlers
	// log goes to clients, whatever they ask for.
	NoLogging bool

	// Extensions are advertised under capabilities.extensions, by their id.
	Extensions map[string]map[string]any

	// Versions are the protocol revisions to serve; nil: all of [Versions].
	Versions []string

	// Logger gets what operators should know: cancelled requests at debug level,
	// handlers that failed, panicked or ignored their token above it. nil:
	// slog.Default().
	Logger *slog.Logger

	// Observer is told about every request that ends; nil: nobody is.
	Observer *Observer

	// Timeout limits each request; 0: no limit. Tools may have their own.
	Timeout time.Duration
	// MaxTimeout is the hard maximum that no limit and no progress exceeds; 0: none.
	MaxTimeout time.Duration
	// ResetOnProgress starts a request's limit anew with each progress report,
	// within MaxTimeout.
	ResetOnProgress bool

	// ClientTimeout bounds calls to the client (elicitation, sampling, roots); 0:
	// five minutes; negative: only the caller's ctx does.
	ClientTimeout time.Duration

	// ParkTimeout is how long a handler of the stateless era may wait for the
	// client's retry with the input it asked for. 0: ten minutes.
	ParkTimeout time.Duration
	// MaxParked bounds the handlers that wait so. 0: 1024; negative: no bound.
	MaxParked int
	// StateKeys seal what handlers keep with the client (requestState). The first
	// one seals, all of them open, so keys can be rotated; each has 32 bytes. Servers
	// that share retries must share keys. nil: a random key of this server's own.
	StateKeys [][]byte
	// StateLifetime is how long a sealed state is good for. 0: one hour.
	StateLifetime time.Duration

	// Grace is how long a cancelled handler may take to return. After that it is
	// reported as unresponsive and, where an answer is still owed, the runtime
	// answers for it. 0: five seconds.
	Grace time.Duration

	// DrainGrace is how long Drain lets running requests go on before it cancels
	// them. 0: five seconds; negative: it cancels at once.
	DrainGrace time.Duration

	// MaxInFlight bounds the requests of one session that are queued or running; a
	// further one is refused with -32603. A cancelled request makes room at once. Its
	// handler, if it runs on, is counted apart: while as many of those are left, requests
	// are refused as well. Of requests of the stateless era over HTTP, which have no
	// session, only the latter are bounded, all together. 0: 16384; negative: no bound.
	MaxInFlight int
	// MaxConcurrent bounds the handlers that run at the same time in the whole
	// server; further requests wait their turn and can be cancelled while they do.
	// ping, server/discover, logging/setLevel and subscriptions do not count. 0: no bound.
	MaxConcurrent int

	// ProgressInterval is the least time between two progress notifications of
	// one request once a burst of 16 is used up; reports in between are merged into the
	// last. 0: 10 ms; negative: none are merged.
	ProgressInterval time.Duration

	// LogInterval is the least time between two log messages to the client of one
	// request, once a burst of 256 is used up; what comes sooner is dropped, and the operator's
	// logger told of the first. 0: 1 ms; negative: none are dropped.
	LogInterval time.Duration

	// MaxSubscriptions bounds the subscriptions/listen requests that are open at
	// once. 0: 16384; negative: no bound.
	MaxSubscriptions int

	// KeepAlive is how often clients of the handshake era are pinged, where the
	// transport has a stream for it. 0: never.
	KeepAlive time.Duration
	// KeepAliveMisses is how many pings in a row may stay unanswered before the
	// session ends, with origin Disconnect. 0: three.
	KeepAliveMisses int

	// MaxWatched bounds the resources that one session of the handshake era may
	// be subscribed to. 0: 1024; negative: no bound.
	MaxWatched int

	// AnnounceDelay is for how long changes of lists and resources are gathered
	// before clients of the handshake era are told of them, once. 0: 10 ms; negative: not at all.
	AnnounceDelay time.Duration

	// Changed is called for each change that this process was told of, by
	// [Server.ResourceUpdated], [Server.ToolsChanged] and their like, so that other
	// processes with the same clients can be told: send it there, to [Server.Announce].
	// What is registered and removed is an affair of each process and is not passed on. It
	// is called on the goroutine that tells of the change, by several at once, and must not
	// block; its panics are contained and logged. nil: nobody else is told.
	Changed func(Change)

	// CacheHints are the caching hints for results of the stateless era, by method:
	// server/discover, tools/list, prompts/list, resources/list,
	// resources/templates/list, resources/read. None: do not keep, do not share.
	CacheHints map[string]CacheHint

	// PageSize is how many items a list request returns at once. 0: 1000.
	PageSize int
	// RegistrationOrder lists tools, prompts, resources and templates in the order in
	// which they were first registered. false: by name, so that the order does not
	// depend on the program's start.
	RegistrationOrder bool

	// MaxDepth bounds the nesting of a message. 0: 128.
	MaxDepth int

	// ErrorText turns a handler's error into the text the peer gets; nil: its
	// Error method. Protocol errors (*jsonrpc.Error) and panics do not pass it.
	ErrorText func(error) string

	// HideServerInfo leaves the server's name and version out of the results
	// of the stateless era.
	HideServerInfo bool
}

const (
	defaultClientTimeout    = 5 * time.Minute
	defaultParkTimeout      = 10 * time.Minute
	defaultMaxParked        = 1024
	defaultStateLifetime    = time.Hour
	defaultGrace            = 5 * time.Second
	defaultDrainGrace       = 5 * time.Second
	defaultMaxInFlight      = 16384
	defaultProgressInterval = 10 * time.Millisecond
	defaultLogInterval      = time.Millisecond
	defaultMaxSubscriptions = 16384
	defaultKeepAliveMisses  = 3
	defaultMaxWatched       = 1024
	defaultAnnounceDelay    = 10 * time.Millisecond
	defaultPageSize         = 1000
)

// withDefaults returns a copy in which every field holds what is in force.
func (o *Options) withDefaults() Options {
	var p Options
	if o != nil {
		p = *o
	}
	if p.Logger == nil {
		p.Logger = slog.Default()
	}
	if p.Observer == nil {
		p.Observer = &Observer{}
	}
	p.ClientTimeout = orDefault(p.ClientTimeout, defaultClientTimeout)
	p.ParkTimeout = orDefault(p.ParkTimeout, defaultParkTimeout)
	p.MaxParked = orDefault(p.MaxParked, defaultMaxParked)
	p.StateLifetime = orDefault(p.StateLifetime, defaultStateLifetime)
	p.Grace = orDefault(p.Grace, defaultGrace)
	p.DrainGrace = orDefault(p.DrainGrace, defaultDrainGrace)
	p.MaxInFlight = orDefault(p.MaxInFlight, defaultMaxInFlight)
	p.ProgressInterval = orDefault(p.ProgressInterval, defaultProgressInterval)
	p.LogInterval = orDefault(p.LogInterval, defaultLogInterval)
	p.MaxSubscriptions = orDefault(p.MaxSubscriptions, defaultMaxSubscriptions)
	if p.KeepAliveMisses <= 0 {
		p.KeepAliveMisses = defaultKeepAliveMisses
	}
	p.MaxWatched = orDefault(p.MaxWatched, defaultMaxWatched)
	p.AnnounceDelay = orDefault(p.AnnounceDelay, defaultAnnounceDelay)
	p.PageSize = orDefault(p.PageSize, defaultPageSize)
	if p.PageSize < 0 {
		p.PageSize = defaultPageSize
	}
	if p.ErrorText == nil {
		p.ErrorText = error.Error
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
