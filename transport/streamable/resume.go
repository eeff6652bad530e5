package streamable

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveGet opens the stream for what belongs to no request, or resumes a stream
// whose connection was lost.
//
// Specification: basic/transports (2025-11-25), listening for messages from the
// server; resumability and redelivery.
func (h *Handler) serveGet(w http.ResponseWriter, r *http.Request) {
	if h.refusing() {
		refuseDraining(w)
		return
	}
	if !acceptsOf(r.Header).stream {
		refuse(w, http.StatusNotAcceptable, "the Accept header must list text/event-stream")
		return
	}
	if v, ok := single(r.Header[headerVersion]); !ok || v != "" && !h.serves(v) {
		refuse(w, http.StatusBadRequest, "unsupported protocol version")
		return
	}
	s := h.lookup(w, r, principalOf(tokenOf(r)))
	if s == nil {
		return
	}
	defer h.table.release(s)
	last := r.Header[headerLastEventID]
	if len(last) == 0 {
		s.listener.serve(w, r, nil)
		return
	}
	id, ok := lastEventID(last)
	if !ok || !s.issued(id) {
		refuse(w, http.StatusBadRequest, "the Last-Event-ID was not issued in this session")
		return
	}
	if id.stream == 0 {
		s.listener.serve(w, r, &id)
		return
	}
	s.resume(w, r, id)
}

func tokenOf(r *http.Request) *auth.TokenInfo { return auth.TokenInfoFromContext(r.Context()) }

// issued tells whether an event of that id was ever sent, as far as that is known: of
// streams of which nothing is kept, only their numbers are.
func (s *session) issued(id eventID) bool {
	if id.stream == 0 {
		return s.listener.issued(id.index)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[id.stream]; st != nil {
		return int64(id.index) < st.events.Load()
	}
	if f := s.finishedLocked(id.stream); f != nil {
		return id.index < f.events
	}
	return id.stream <= s.last
}

// finishedLocked finds what is known of an answered stream, nil if it cannot be replayed.
func (s *session) finishedLocked(number uint64) *finished {
	for i := range s.finished {
		if f := &s.finished[i]; f.number == number {
			return f
		}
	}
	return nil
}

// void returns what must not be replayed of an answered stream. It reports false when
// nothing can be.
func (s *session) void(number uint64) (void []span, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.finishedLocked(number)
	if f == nil {
		return nil, false
	}
	return f.void, true
}

// resume goes on with the stream of a POST after the event that the client has seen last.
func (s *session) resume(w http.ResponseWriter, r *http.Request, id eventID) {
	s.mu.Lock()
	st := s.streams[id.stream]
	s.mu.Unlock()
	c := s.handler.newConnection(w, r)
	if st != nil && st.attach(r.Context(), c, id.index) {
		st.wait(r.Context(), c, time.AfterFunc(s.handler.options.keepAlive(), c.ring))
		return
	}
	// It has ended, maybe in the meantime.
	if void, answered := s.void(id.stream); answered && s.replay(r.Context(), c, id, void) {
		return
	}
	// There is nothing to come any more: this status ends an event source's
	// attempts to reconnect.
	w.WriteHeader(http.StatusNoContent)
}

// attach makes c the connection of the stream, after what it has missed since the event
// with that index. It reports false when the stream has ended.
func (st *stream) attach(ctx context.Context, c *connection, after int) bool {
	if !st.mu.TryLock() {
		// Whoever holds it may be writing to a connection that is dead and does not
		// know it yet.
		st.newest.Load().tell(newsHurry)
		st.mu.Lock()
	}
	defer st.unlock()
	if st.ended || st.silenced.Load() {
		return false
	}
	st.newest.Store(c)
	st.disconnectLocked() // a connection that may not know yet that it is dead (H3)
	if st.grace != nil {
		st.grace.Stop()
		st.grace = nil
	}
	st.conn = c
	err := c.sink.open(nil)
	if err == nil {
		err = st.s.catchUp(ctx, c, eventID{st.number, after}, st.void)
	}
	if errors.Is(err, mcp.ErrEventsPurged) {
		// What is lost is lost; the answer is still to come.
		st.s.handler.options.Logger.Debug("resumed a stream of which events were dropped", "session", st.s.id)
		err = nil
	}
	if err == nil && !c.sink.identified && primes(st.s.version) {
		// Some clients resume only from an id that they got on the connection they lost.
		if id := st.recordLocked(nil); id != "" {
			err = c.sink.event(id, nil)
		}
	}
	st.lostLocked(err)
	return true
}

// replay writes what a stream that has ended still has for the client. It reports
// false, and has written nothing, when that is nothing.
func (s *session) replay(ctx context.Context, c *connection, id eventID, void []span) bool {
	err := s.catchUp(ctx, c, id, func(index int) bool { return within(void, index) })
	if c.sink.phase == sinkFresh {
		return false
	}
	if err != nil {
		s.handler.options.Logger.Debug("replay of a stream ended early", "session", s.id, "error", err)
	}
	c.sink.close()
	return true
}

// catchUp writes the events of a stream after the given one, except those that are void,
// opening the response if there are any.
func (s *session) catchUp(ctx context.Context, c *connection, id eventID, void func(index int) bool) error {
	name := strconv.FormatUint(id.stream, 10)
	for data, err := range s.handler.options.EventStore.After(ctx, s.id, name, id.index) {
		if err != nil {
			return err
		}
		id.index++
		if void(id.index) {
			continue
		}
		if c.sink.phase == sinkFresh {
			if err := c.sink.open(nil); err != nil {
				return err
			}
		}
		if err := c.sink.event(id.String(), data); err != nil {
			return err
		}
	}
	return nil
}
