package stdio

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
)

// maxBlocked is how many answers may wait for a peer that does not read; requests
// beyond are refused until it does.
const maxBlocked = 4096

// stream reads messages and gives them to the session. Its fields are used by the
// reading goroutine alone, except where they say otherwise.
type stream struct {
	session *server.Session // set once, before read
	logger  *slog.Logger    // never changed
	in      *lines
	out     *outbox // safe for concurrent use

	start   func(*server.Call) // starts a call; made once
	current *reply             // of the message that is being received
	replies []reply            // not used yet
}

func newStream(in *lines, out *outbox, logger *slog.Logger) *stream {
	st := &stream{in: in, out: out, logger: logger}
	st.start = func(c *server.Call) {
		if st.current != nil {
			st.current.mayWait.Store(true)
		}
		go run(c)
	}
	return st
}

// run serves the call on a goroutine of its own.
func run(c *server.Call) {
	deepen(0)
	c.Run()
}

// deepen makes the goroutine's stack as large as nearly every call needs it, in one
// step and while there is nothing on it to be copied. Growing by and by took a
// fifth of the time of a short call. A larger step would cost each call that only
// waits as much again as all else it holds.
//
//go:noinline
func deepen(i int) byte {
	var frame [2 << 10]byte
	return frame[i]
}

// read takes in messages until the input ends, and returns why it did. It waits
// for nothing but input.
func (st *stream) read() error {
	for {
		line, err := st.in.next()
		if errors.Is(err, errTooLong) {
			st.logger.Warn("stdio: a line was skipped, it is longer than MaxLine", "max_bytes", st.in.max)
			st.refuse(jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the line is longer than %d bytes", st.in.max))
			continue
		}
		if err != nil {
			return err
		}
		if st.out.blocked.Load() >= maxBlocked && st.refused(line) {
			continue
		}
		st.receive(line)
	}
}

func (st *stream) receive(line []byte) {
	r := st.reply()
	if jsonrpc.IsBatch(line) {
		// This goroutine answers the batch if all its requests have ended before the last was
		// taken in. What they send meanwhile goes to their parts.
		st.current = nil
		st.session.Receive(line, r, nil, st.start)
		r.mayWait.Store(true)
		return
	}
	st.current = r
	st.session.Receive(line, r, nil, st.start)
}

// refused refuses what would be answered; the rest, such as cancels, must get
// through.
func (st *stream) refused(line []byte) bool {
	const why = "too many answers are waiting to be read"
	if jsonrpc.IsBatch(line) {
		st.refuse(jsonrpc.ID{}, jsonrpc.CodeInternalError, why)
		return true
	}
	var m jsonrpc.Message
	if jsonrpc.Scan(line, jsonrpc.Limits{}, &m) != nil || m.Kind != jsonrpc.KindRequest {
		return false
	}
	st.refuse(m.ID, jsonrpc.CodeInternalError, why)
	return true
}

func (st *stream) refuse(id jsonrpc.ID, code int, why string) {
	st.out.put(jsonrpc.AppendError(nil, id, code, why, nil), nil, true) // an error ends the service anyway
}

// send writes a message that belongs to no request.
func (st *stream) send(msg []byte) error { return st.out.put(msg, nil, false) }

// reply returns a new reply. They are made many at a time.
func (st *stream) reply() *reply {
	if len(st.replies) == 0 {
		st.replies = make([]reply, 32)
	}
	r := &st.replies[0]
	st.replies = st.replies[1:]
	r.out = st.out
	return r
}

// reply is where the messages of one request go: to the stream's output.
type reply struct {
	out *outbox // set once

	// mayWait is false while the reading goroutine may be the one that answers: it
	// refuses requests and answers initialize. Set once, when a handler takes over.
	mayWait atomic.Bool

	// The outbox's mu guards what follows.
	silent  bool          // set once, by silence
	settled bool          // the answer was put; set once, by put
	met     meeting       // where a message was written last; see queue.pass
	room    chan struct{} // closed when put is to look for room again; nil if none waits
}

func (r *reply) Send(msg []byte) error { return r.out.put(msg, r, false) }

func (r *reply) Answer(msg []byte, _ int) {
	r.out.put(msg, r, true) // an error ends the service anyway
}

func (r *reply) Silence() { r.out.silence(r) }

// Part makes the reply of one request of a batch, so that what it has put can be taken
// back while the others' is not. Only its handler sends to it; its answer is the batch's affair.
func (r *reply) Part() server.Reply {
	part := &reply{out: r.out}
	part.mayWait.Store(true)
	return part
}

// waits reports whether whoever sends may wait for room.
func (r *reply) waits() bool { return r.mayWait.Load() }
