package streamable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Forgetter is what an [mcp.EventStore] may be as well: it is told when a
// stream cannot be resumed any more, because its request was cancelled or its
// answer is long past, and may then free what it holds of it.
type Forgetter interface {
	Forget(ctx context.Context, sessionID, streamID string) error
}

// forget tells the store that a stream will not be resumed.
func (s *session) forget(name string) {
	f, ok := s.handler.options.EventStore.(Forgetter)
	if !ok {
		return
	}
	if err := f.Forget(context.Background(), s.id, name); err != nil {
		s.handler.options.Logger.Warn("event store could not forget a stream", "session", s.id, "error", err)
	}
}

// RingStore is an [mcp.EventStore] in memory of bounded size: the newest events
// push the oldest out, whatever stream they belong to, and no stream may take more
// than an eighth of the whole. It is a [Forgetter] as well.
//
// Its methods may be called concurrently.
type RingStore struct {
	max int // bytes, the overhead of events included; never changed

	mu       sync.Mutex // guards the fields below
	size     int
	sessions map[string]map[string]*storedStream // session id -> stream id
	oldest   *storedEvent                        // nil while there is none
	newest   *storedEvent
}

// storedStream is what is left of a stream: the events from first on.
type storedStream struct {
	size   int
	first  int // index of events[0]
	events []*storedEvent
	room   [6]*storedEvent // where events begin: most streams have no more
}

// storedEvent is a link in the list of all events, by age.
type storedEvent struct {
	stream       *storedStream
	data         []byte
	older, newer *storedEvent
}

const (
	defaultStoreSize = 32 << 20
	eventOverhead    = 128
)

// NewRingStore returns a store that holds about maxBytes bytes; 0 or less: 32 MiB.
func NewRingStore(maxBytes int) *RingStore {
	if maxBytes <= 0 {
		maxBytes = defaultStoreSize
	}
	return &RingStore{max: maxBytes, sessions: map[string]map[string]*storedStream{}}
}

var errNoSuchStream = errors.New("streamable: the store has no such stream")

// Open implements [mcp.EventStore].
func (rs *RingStore) Open(_ context.Context, sessionID, streamID string) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.openLocked(sessionID, streamID)
	return nil
}

func (rs *RingStore) openLocked(sessionID, streamID string) *storedStream {
	streams := rs.sessions[sessionID]
	if streams == nil {
		streams = map[string]*storedStream{}
		rs.sessions[sessionID] = streams
	}
	st := streams[streamID]
	if st == nil {
		st = &storedStream{}
		st.events = st.room[:0]
		streams[streamID] = st
	}
	return st
}

// Append implements [mcp.EventStore]. It keeps data.
func (rs *RingStore) Append(_ context.Context, sessionID, streamID string, data []byte) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	st := rs.openLocked(sessionID, streamID)
	e := &storedEvent{stream: st, data: data, older: rs.newest}
	if rs.newest != nil {
		rs.newest.newer = e
	} else {
		rs.oldest = e
	}
	rs.newest = e
	st.events = append(st.events, e)
	st.size += e.cost()
	rs.size += e.cost()
	for st.size > rs.max/8 && len(st.events) > 1 {
		rs.dropFirstLocked(st)
	}
	for rs.size > rs.max && rs.oldest != e {
		rs.dropFirstLocked(rs.oldest.stream)
	}
	return nil
}

func (e *storedEvent) cost() int { return len(e.data) + eventOverhead }

// dropFirstLocked drops the oldest event of a stream.
func (rs *RingStore) dropFirstLocked(st *storedStream) {
	e := st.events[0]
	st.events[0] = nil
	st.events = st.events[1:]
	st.first++
	rs.unlinkLocked(e)
}

func (rs *RingStore) unlinkLocked(e *storedEvent) {
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		rs.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		rs.newest = e.older
	}
	e.stream.size -= e.cost()
	rs.size -= e.cost()
}

// After implements [mcp.EventStore].
func (rs *RingStore) After(_ context.Context, sessionID, streamID string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		events, err := rs.after(sessionID, streamID, index)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, data := range events {
			if !yield(data, nil) {
				return
			}
		}
	}
}

func (rs *RingStore) after(sessionID, streamID string, index int) ([][]byte, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	st := rs.sessions[sessionID][streamID]
	if st == nil {
		return nil, errNoSuchStream
	}
	skip := index + 1 - st.first
	if skip < 0 {
		return nil, fmt.Errorf("streamable: events after %d: %w", index, mcp.ErrEventsPurged)
	}
	var events [][]byte
	for i := skip; i < len(st.events); i++ {
		events = append(events, st.events[i].data)
	}
	return events, nil
}

// SessionClosed implements [mcp.EventStore].
func (rs *RingStore) SessionClosed(_ context.Context, sessionID string) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, st := range rs.sessions[sessionID] {
		rs.emptyLocked(st)
	}
	delete(rs.sessions, sessionID)
	return nil
}

// Forget implements [Forgetter].
func (rs *RingStore) Forget(_ context.Context, sessionID, streamID string) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	streams := rs.sessions[sessionID]
	if st := streams[streamID]; st != nil {
		rs.emptyLocked(st)
		delete(streams, streamID)
	}
	return nil
}

func (rs *RingStore) emptyLocked(st *storedStream) {
	for _, e := range st.events {
		rs.unlinkLocked(e)
	}
	st.events = nil
}

// Size is the number of bytes held now, the overhead of events included.
func (rs *RingStore) Size() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.size
}
