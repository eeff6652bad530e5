package streamable

import (
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
)

// A stream whose client is away: because its connection was lost, or because it was
// told to come back later.

// lostLocked lets go of a connection that cannot be written to.
func (st *stream) lostLocked(err error) {
	if err != nil {
		st.disconnectLocked()
		st.awayLocked(0)
	}
}

// detach notes that a connection was dropped by the client (H2).
func (st *stream) detach(c *connection) {
	st.mu.Lock()
	defer st.unlock()
	if st.conn == c {
		st.disconnectLocked()
		st.awayLocked(0)
	}
}

// awayLocked gives a client that is away its time to come back, if there is a limit.
func (st *stream) awayLocked(retry time.Duration) {
	if grace := st.s.handler.options.DisconnectGrace; grace > 0 && !st.ended {
		st.grace = time.AfterFunc(max(grace, grace+retry), st.abandoned) // the sum may be too large for a Duration
	}
}

// abandoned cancels the requests of a client that did not come back in time.
func (st *stream) abandoned() {
	st.mu.Lock()
	calls := st.calls
	away := st.conn == nil
	st.unlock()
	if !away {
		return
	}
	for _, c := range calls {
		c.Cancel(cancellation.Disconnect, "the client did not come back for the response")
	}
}

// closeForNow closes the connection so that the client comes back for the rest.
//
// Specification: basic/transports (2025-11-25), sending messages to the server.
func (st *stream) closeForNow(retry time.Duration) error {
	st.mu.Lock()
	defer st.unlock()
	if st.ended || st.conn == nil {
		return errStreamGone
	}
	if st.conn.sink.phase == sinkFresh {
		st.commitLocked()
	}
	// An id of its own is news to clients that give up after so many connections
	// without any.
	id := st.recordLocked(nil)
	if id == "" {
		return servercontext.ErrNotSupported
	}
	if st.conn != nil {
		_ = st.conn.sink.retry(id, retry) // a client that is gone comes back or not
		st.disconnectLocked()
		st.awayLocked(retry)
	}
	return nil
}
