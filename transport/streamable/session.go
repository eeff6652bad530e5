package streamable

import (
	"container/list"
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
)

// session is one client of the handshake era.
//
// Fields of the first block are set before it is in the table, and never
// changed.
type session struct {
	handler   *Handler
	id        string
	principal string // who opened it, "" for nobody in particular
	version   string // the revision of the handshake
	inner     *server.Session
	listener  listener // the stream for what belongs to no request; has a lock of its own

	ended atomic.Bool // set once, by end

	// The table's mu guards these.
	place  *list.Element // where it is in the table's order, nil when it is out
	active int           // HTTP requests that are being served
	used   time.Duration // when it was last acquired or released, by the table's clock

	mu       sync.Mutex         // guards the fields below; no lock is taken while it is held
	last     uint64             // number of the last stream; the listener's is 0
	streams  map[uint64]*stream // resumable and not finished; nil before the first
	finished []finished         // answered streams that can still be replayed, the oldest first; at most maxFinished
}

// finished is what is known of an answered stream.
type finished struct {
	number uint64
	events int    // how many events were given an id
	void   []span // what must not be replayed: of cancelled requests of a batch; nil for most
}

// maxFinished is how many answered streams of a session can still be replayed.
const maxFinished = 64

// ending is why a session ends.
type ending struct {
	origin cancellation.Origin
	reason string
}

var (
	endDeleted  = ending{cancellation.SessionEnd, "the client ended the session"}
	endExpired  = ending{cancellation.SessionEnd, "the session was idle for too long"}
	endEvicted  = ending{cancellation.SessionEnd, "the session made room for another"}
	endShutdown = ending{cancellation.Shutdown, "server is shutting down"}
)

func (s *session) busyLocked() bool { return s.active > 0 || s.inner.Busy() }

// end ends a session that is out of the table. It waits for no handler.
func (s *session) end(why ending) {
	if s.ended.Swap(true) {
		return
	}
	s.inner.Close(why.origin, why.reason)
	s.listener.close()
	s.closeStore()
}

// closeStore has the store forget the session.
func (s *session) closeStore() {
	if err := s.handler.options.EventStore.SessionClosed(context.Background(), s.id); err != nil {
		s.handler.options.Logger.Warn("event store could not forget a session", "session", s.id, "error", err)
	}
}

// openSession serves an initialize that opens a session.
//
// Specification: basic/transports (2025-11-25), session management.
func (h *Handler) openSession(p *post) {
	s := &session{
		handler:   h,
		id:        rand.Text(), // 130 bits, letters and digits
		principal: principalOf(p.token),
	}
	s.listener.s = s
	s.inner = h.server.Open(context.Background(), server.SessionOptions{
		ID: s.id, Send: s.listener.send, Unordered: true, NoStateless: true,
	})
	x := p.extra()
	welcome := &welcome{s: s, p: p}
	s.inner.Accept(&p.msg, nil, welcome, &x, nil)
	if !welcome.opened {
		s.inner.Close(cancellation.SessionEnd, "the handshake failed")
	}
}

// welcome is the server.Reply of an initialize that opens a session. The server
// answers it before Accept returns.
type welcome struct {
	s      *session
	p      *post
	opened bool
}

func (*welcome) Send([]byte) error { return errNoStream }
func (*welcome) Silence()          {}

// Answer takes the session into the table before the client learns its id.
func (o *welcome) Answer(msg []byte, code int) {
	h, p := o.s.handler, o.p
	if code == 0 {
		o.s.version = o.s.inner.InitializeVersion()
		evicted, err := h.table.add(o.s)
		if err != nil {
			h.options.Logger.Warn("session refused", "error", err)
			h.refuseBusy(p, "too many sessions")
			return
		}
		o.opened = true
		if evicted != nil {
			evicted.end(endEvicted)
		}
		p.w.Header()[headerSession] = []string{o.s.id}
	}
	k := h.newSink(p.w, p.r)
	if code != 0 || p.accepts.json && h.options.Response != Stream || !p.accepts.stream {
		_ = k.json(statusOf(code, false, true), msg, false) // a client that is gone will not use its session
		return
	}
	if k.open(appendEvent(nil, "", msg)) == nil {
		k.close()
	}
}

// lookup finds the session that a request names, or answers it.
func (h *Handler) lookup(w http.ResponseWriter, r *http.Request, principal string) *session {
	id, ok := single(r.Header[headerSession])
	if ok {
		if s := h.table.acquire(id, principal); s != nil {
			return s
		}
	}
	refuse(w, http.StatusNotFound, "there is no such session; initialize opens one")
	return nil
}

// serveSession serves a POST in a session.
func (h *Handler) serveSession(p *post) {
	s := h.lookup(p.w, p.r, principalOf(p.token))
	if s == nil {
		return
	}
	defer h.table.release(s)
	switch {
	case p.fault != nil && p.msg.Kind == jsonrpc.KindRequest:
		p.refuse(statusOf(p.fault.Code, false, true), p.fault.Code, p.fault.Message)
	case p.fault != nil:
		p.refuse(http.StatusBadRequest, p.fault.Code, p.fault.Message)
	case p.batch || p.msg.Kind == jsonrpc.KindRequest:
		s.serveRequest(p)
	default:
		x := p.extra()
		s.inner.Accept(&p.msg, nil, &reply{}, &x, nil)
		p.w.WriteHeader(http.StatusAccepted)
	}
}

// serveDelete ends a session.
func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request) {
	s := h.lookup(w, r, principalOf(tokenOf(r)))
	if s == nil {
		return
	}
	defer h.table.release(s)
	if h.table.remove(s) {
		s.end(endDeleted)
	}
	w.WriteHeader(http.StatusNoContent)
}

// newStream makes the stream of a POST.
func (s *session) newStream() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return &stream{s: s, number: s.last, name: strconv.FormatUint(s.last, 10)}
}

// resumable notes a stream that the client can come back to.
func (s *session) resumable(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[uint64]*stream{}
	}
	s.streams[st.number] = st
}

// over notes that a stream has ended: answered, so that it can be replayed, or
// silenced, so that it cannot. It names the stream that can be forgotten instead.
func (s *session) over(st *stream, answered bool) (forget string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[st.number] != st {
		return ""
	}
	delete(s.streams, st.number)
	if !answered {
		return st.name
	}
	s.finished = append(s.finished, finished{st.number, int(st.events.Load()), st.voided()})
	if len(s.finished) <= maxFinished {
		return ""
	}
	oldest := s.finished[0].number
	s.finished = append(s.finished[:0], s.finished[1:]...)
	return strconv.FormatUint(oldest, 10)
}
