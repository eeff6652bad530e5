package server

import (
	"context"
	"errors"
	"sync"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Invariants of this file. Each has a test named after it.
//
//	S1  A request is in calls from its acceptance until it was cancelled and no
//	    answer is owed, or until just before its answer is written.
//	S2  A cancel reaches a request only through calls, under mu: it can hit
//	    neither a request that has ended nor a later one with the same id.
//	S3  Requests of one session cannot be named from another.
//	S4  After Close no request is accepted and every accepted one is cancelled.
//
// Lock order: Server.mu, then Session.mu, then call.mu. No lock is held while a
// transport or a handler is called.

// ErrClosed is returned by calls to a client whose session has ended.
var ErrClosed = errors.New("server: session closed")

// Phases of the handshake.
type phase uint8

const (
	phaseNew         phase = iota // no initialize yet
	phaseInitialized              // initialize was answered
	phaseReady                    // and the client has said notifications/initialized
)

// Session is one peer with ids of its own: a stream such as stdio, or a
// handshake-era session over HTTP. Transports open one and give it what they
// read; handlers see it as a [servercontext.Session].
type Session struct {
	server  *Server
	context context.Context        // values for handlers; never ends
	values  *servercontext.Session // nil for the stateless scope
	o       SessionOptions         // never changed
	scope   bool                   // the stateless scope, whose requests have no ids in common; never changed

	mu         sync.Mutex                // guards the fields below; maps are made when they are first needed
	phase      phase                     // moves forward only, by initialize and notifications/initialized
	rev        *revision                 // set once, by initialize
	client     *servercontext.Client     // set once, by initialize
	level      int                       // severity asked for by logging/setLevel; 0: none yet
	calls      map[jsonrpc.ID]*Call      // accepted and not cancelled; empty in the stateless scope
	running    map[*Call]struct{}        // accepted and not returned, lingering ones included
	lingering  int                       // handlers that run on although their id is free; changed by forget, returned, lingers
	early      *earlyCancels             // cancels that overtook their request; used if o.Unordered
	operations map[*operation]struct{}   // the session's, whose handlers have not returned
	untold     map[*operation]struct{}   // the session's, parked, whose handlers have returned
	parked     map[jsonrpc.ID]*operation // parked operations by the id they were parked for; empty in the stateless scope
	pending    map[jsonrpc.ID]*question  // requests to the client that wait for its answer
	nextID     int64                     // id of the last request to the client
	closed     *cancellation.Error       // why, once the session has ended
	draining   bool                      // set once, by Drain: no further requests
	inbox      inbox                     // notifications that wait for their handlers
	idle       chan struct{}             // closed when running gets empty; made by whoever waits
	told       bool                      // done is, or would be, closed; set once, by Close

	watched subscriptions // resources that the client wants to hear of; has a lock of its own
	// Made when they are first needed, under mu, and never once the session has ended.
	announcements *announcements // changes that it is to be told of; has a lock of its own
	keepAlive     *keepAlive     // has a lock of its own
	done          chan struct{}  // closed when the session has ended
}

// SessionOptions describe a session to be opened by a transport.
type SessionOptions struct {
	// ID names the session: its Mcp-Session-Id over HTTP. It may be "".
	ID string

	// Send writes a message that belongs to no request, on whatever stream the
	// transport has for such. nil: there is none. It may be called by several
	// goroutines at once, and may block; the message is valid only during the call.
	Send func(msg []byte) error

	// Unordered says that a cancel may overtake its request, as POSTs of the
	// handshake era may. Such cancels are remembered for a short while.
	Unordered bool

	// NoStateless refuses the stateless era in this session, for transports that
	// serve it elsewhere.
	NoStateless bool

	// Version opens the session as if a handshake had settled on that revision,
	// with a client that has no capabilities, for transports that serve single
	// requests of the handshake era. "" and a revision that is not served: there
	// was no handshake yet.
	Version string
}

// Open starts a session. Values of ctx are visible to handlers; its end is not,
// since only the transport knows what that should mean: it calls Close. When
// the server is draining, Open returns a session that refuses all requests.
func (s *Server) Open(ctx context.Context, o SessionOptions) *Session {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ss := &Session{
		server:  s,
		context: ctx,
		values:  servercontext.NewSession(o.ID),
		o:       o,
	}
	if rev := find(s.revisions, o.Version); rev != nil && !rev.stateless {
		ss.rev, ss.phase = rev, phaseReady
		ss.client = &servercontext.Client{Capabilities: &mcp.ClientCapabilities{}}
	}
	s.mu.Lock()
	s.sessions[ss] = struct{}{}
	s.mu.Unlock()
	return ss
}

// openStateless makes the scope of stateless-era requests over HTTP. They have
// no ids that another request could name, so it keeps none.
func (s *Server) openStateless() *Session {
	ss := &Session{server: s, context: context.Background(), scope: true}
	s.sessions[ss] = struct{}{}
	return ss
}

// Stateless is the scope in which a transport without a stream of its own, such as
// HTTP, receives requests of the stateless era: they share no ids, and belong to
// no session. It is never closed.
func (s *Server) Stateless() *Session { return s.stateless }

// ID is the session's id as its transport gave it.
func (ss *Session) ID() string { return ss.o.ID }

// InitializeVersion is the revision that the handshake settled on, "" before.
func (ss *Session) InitializeVersion() string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.rev == nil {
		return ""
	}
	return ss.rev.version
}

// Done returns a channel that is closed when the session has ended, whoever
// closed it: the transport, or the server because pings went unanswered. It is nil,
// and so never closed, for the scope of the stateless era.
func (ss *Session) Done() <-chan struct{} {
	if ss.scope {
		return nil
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.done == nil {
		ss.done = make(chan struct{})
		if ss.told {
			close(ss.done)
		}
	}
	return ss.done
}

// tell closes what Done returns. Only Close calls it.
func (ss *Session) tell() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.told = true
	if ss.done != nil {
		close(ss.done)
	}
}

// Busy reports whether a handler is running, or a request waiting, in this session.
func (ss *Session) Busy() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return !ss.quietLocked()
}

// Cancel cancels the request with that id (JSON text, such as 7 or "7") for
// origin. It reports whether there was one to cancel. It never blocks.
func (ss *Session) Cancel(id string, origin cancellation.Origin, reason string) bool {
	key, ok := jsonrpc.ParseID([]byte(id))
	return ok && ss.cancel(key, origin, reason)
}

func (ss *Session) cancel(id jsonrpc.ID, origin cancellation.Origin, reason string) bool {
	ss.mu.Lock()
	c := ss.calls[id]
	ss.mu.Unlock()
	// Between here and there c may finish and its id may be taken by a new
	// request; the cancel then meets a finished source and does nothing.
	if c != nil && c.cancel(origin, reason) {
		return true
	}
	// It may have been parked a moment ago, and be on its way out of calls.
	return origin == cancellation.Peer && ss.cancelParked(id, reason)
}

// CancelAll cancels every running request of the session and reports how many
// there were.
func (ss *Session) CancelAll(origin cancellation.Origin, reason string) int {
	ss.clearInbox(origin, reason)
	n := 0
	for _, c := range ss.snapshot() {
		if c.cancel(origin, reason) {
			n++
		}
	}
	return n
}

func (ss *Session) snapshot() []*Call {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	calls := make([]*Call, 0, len(ss.running))
	for c := range ss.running {
		calls = append(calls, c)
	}
	return calls
}

// Close ends the session: it cancels what is running, frees calls to the
// client with [ErrClosed] and refuses what comes later. origin is Disconnect when the
// peer is gone, SessionEnd when the session was ended on purpose, Shutdown
// when the server ends. Close does not wait for handlers; [Session.Wait] does. A
// second Close does nothing.
func (ss *Session) Close(origin cancellation.Origin, reason string) {
	ss.mu.Lock()
	if ss.closed != nil {
		ss.mu.Unlock()
		return
	}
	ss.closed = &cancellation.Error{Origin: origin, Reason: reason}
	pending := ss.pending
	ss.pending = nil
	ss.mu.Unlock()

	ss.CancelAll(origin, reason)
	ss.endOperations(origin, reason)
	ss.tell()
	ss.endKeepAlive()
	ss.endAnnouncements()
	ss.endSubscriptions()
	for _, q := range pending {
		q.resolve(answer{err: ErrClosed})
	}
	s := ss.server
	s.mu.Lock()
	delete(s.sessions, ss)
	s.mu.Unlock()
}

// Wait blocks until no handler of the session runs any more, or until ctx ends; it
// then returns ctx's error.
func (ss *Session) Wait(ctx context.Context) error {
	for {
		ss.mu.Lock()
		if ss.quietLocked() {
			ss.mu.Unlock()
			return nil
		}
		if ss.idle == nil {
			ss.idle = make(chan struct{})
		}
		idle := ss.idle
		ss.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (ss *Session) isClosed() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.closed != nil
}

// quietLocked tells whether no handler runs.
func (ss *Session) quietLocked() bool {
	return len(ss.running) == 0 && len(ss.operations) == 0 && ss.inbox.quiet()
}

// wakeLocked wakes whoever waits for the session to be quiet.
func (ss *Session) wakeLocked() {
	if ss.quietLocked() && ss.idle != nil {
		close(ss.idle)
		ss.idle = nil
	}
}

// setLevel notes what logging/setLevel asked for.
func (ss *Session) setLevel(level mcp.LoggingLevel) {
	ss.mu.Lock()
	ss.level = servercontext.Severity(level)
	ss.mu.Unlock()
}

// put adds to a map that may not have been made yet: most sessions are idle, and
// an idle one should cost next to nothing.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}
