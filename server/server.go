package server

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server is an MCP server: what is registered with it, and the requests it is
// serving. One Server serves any number of sessions, over any number of transports, in
// every protocol revision at once.
//
// All methods may be called concurrently, also while requests are running.
type Server struct {
	implementation *mcp.Implementation // never changed after New
	options        Options             // with defaults in force; never changed after New
	revisions      []*revision         // the ones served, newest first; never changed after New
	builtin        map[string]*method  // never changed after New
	limits         jsonrpc.Limits      // never changed after New
	sealer         *sealer             // seals requestStates; never changed after New
	encodedInfo    []byte              // implementation as JSON; never changed after New

	registry atomic.Pointer[registry] // the current snapshot: published, or nil while there is a draft

	changing  sync.Mutex // guards the fields below; held while a registry is copied
	published *registry  // the last snapshot; never nil
	draft     *registry  // with what was registered since; nil when nothing was

	slots    slots    // bounds the handlers that run at once
	counters counters // statistics
	stacks   stacks   // of handlers that ignore their token
	events   events   // what subscribers want to hear of
	clients  clients  // how clients introduced themselves

	mu       sync.Mutex            // guards the fields below; no lock is taken while it is held
	parked   map[string]*operation // operations that wait for a retry, by their id
	sessions map[*Session]struct{} // open sessions, the shared stateless one included
	draining atomic.Bool           // set once, by Drain, under mu

	stateless *Session // the scope of requests that belong to no session; never changed after New
}

// counters are statistics since New.
type counters struct {
	inFlight     atomic.Int64 // requests that may still be answered
	lingering    atomic.Int64 // cancelled requests whose handlers still run
	listening    atomic.Int64 // subscriptions of the stateless era
	dropped      atomic.Int64 // messages and results that were not sent because of a cancel
	unresponsive atomic.Int64 // handlers that outlived the grace period
}

// New returns a server that introduces itself as implementation, which must
// have a name; a version of "" is sent as such. options may be nil.
//
// New panics when implementation or options are unusable, which is a mistake
// in the program and shows at its start; [TryNew] returns the error instead.
func New(implementation *mcp.Implementation, options *Options) *Server {
	s, err := TryNew(implementation, options)
	if err != nil {
		panic(err)
	}
	return s
}

// TryNew is New for programs whose options come from elsewhere. It returns an
// error when the implementation has no name or cannot be encoded, when one of its icons
// has a source that clients must not load, or when options name a protocol
// revision that Heed does not serve or a state key of the wrong length.
func TryNew(implementation *mcp.Implementation, options *Options) (*Server, error) {
	if implementation == nil || implementation.Name == "" {
		return nil, errors.New("server: the implementation needs a name")
	}
	s := &Server{
		implementation: implementation,
		options:        options.withDefaults(),
		sessions:       map[*Session]struct{}{},
		parked:         map[string]*operation{},
	}
	if err := checkIcons(implementation.Icons); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	var unknown string
	if s.revisions, unknown = supported(s.options.Versions); unknown != "" {
		return nil, fmt.Errorf("server: protocol version %q is unknown", unknown)
	}
	if len(s.revisions) == 0 {
		return nil, errors.New("server: no protocol version to serve")
	}
	var err error
	if s.encodedInfo, err = appendJSON(nil, implementation); err != nil {
		return nil, fmt.Errorf("server: the implementation cannot be encoded: %w", err)
	}
	if s.sealer, err = newSealer(s.options.StateKeys); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.limits = jsonrpc.Limits{Depth: s.options.MaxDepth}
	s.slots.init(s.options.MaxConcurrent)
	s.builtin = s.builtinMethods()
	first := newRegistry()
	first.compile(s, newRegistry())
	s.publishLocked(first) // nobody else knows s yet
	s.stateless = s.openStateless()
	s.events.subscribe(s.announce)
	return s, nil
}

// MaxDepth is the nesting that a message may have, for transports that scan
// messages themselves; 0: the scanner's own bound.
func (s *Server) MaxDepth() int { return s.limits.Depth }

// Logger is what the server logs to, for transports that log as well.
func (s *Server) Logger() *slog.Logger { return s.options.Logger }

// Stats are figures about a server as of one moment.
type Stats struct {
	InFlight     int   // requests that may still be answered
	Lingering    int   // cancelled requests whose handlers still run
	Sessions     int   // open sessions
	Listening    int   // subscriptions of the stateless era
	Parked       int   // handlers that wait for a retry with input from their client
	Dropped      int64 // messages and results not sent because of a cancel, since New
	Unresponsive int64 // handlers that ignored their token for the grace period, since New
}

// Stats returns the server's figures as of now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	sessions := len(s.sessions) - 1 // the stateless scope is no session
	parked := len(s.parked)
	s.mu.Unlock()
	return Stats{
		InFlight:     int(s.counters.inFlight.Load()),
		Lingering:    int(s.counters.lingering.Load()),
		Sessions:     sessions,
		Parked:       parked,
		Listening:    int(s.counters.listening.Load()),
		Dropped:      s.counters.dropped.Load(),
		Unresponsive: s.counters.unresponsive.Load(),
	}
}
