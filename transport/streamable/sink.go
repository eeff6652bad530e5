package streamable

import (
	"net/http"
	"strconv"
	"time"
)

// sink writes one HTTP response: one JSON body, an event stream, or only a
// status. Its owner makes the calls one at a time and none after the
// ServeHTTP that w belongs to has returned.
type sink struct {
	w       http.ResponseWriter
	control *http.ResponseController // of an event stream; made by begin
	writes  *alarms                  // bound each write that may block
	shared  bool                     // other responses share the connection, so that even a short write may block

	phase   sinkPhase
	written time.Time // when the stream was last written to
	buffer  []byte    // what is written next; empty between calls, but after begin
	sent    int       // bytes of the stream written so far
	length  [1]string // the value of the Content-Length header

	identified bool // an event with an id was written

	slow alarm // rings when a write takes too long
	cut  bool  // it has
}

func (h *Handler) newSink(w http.ResponseWriter, r *http.Request) sink {
	return sink{w: w, writes: &h.writes, shared: r.ProtoMajor != 1}
}

// A sink moves from fresh to streaming to closed, or from fresh to closed.
type sinkPhase uint8

const (
	sinkFresh sinkPhase = iota // nothing was written
	sinkStreaming
	sinkClosed
)

// bigBody is the size from which on a JSON body, or a whole event stream, is sent at once, and not left to
// net/http, which sends what is left when ServeHTTP has returned and knows no bound for it but the http.Server's.
const bigBody = 32 << 10

// json writes the whole response. now has it sent at once, for callers that do not
// return from ServeHTTP as soon as it is written. However short it is, that may block on a client
// that asks for more than it reads.
func (k *sink) json(status int, body []byte, now bool) error {
	k.phase = sinkClosed
	k.bound()
	defer k.release()
	defer k.unbound()
	k.length[0] = strconv.Itoa(len(body))
	err := writeJSON(k.w, status, body, k.length[:])
	if now || k.shared || len(body) > bigBody {
		if f, ok := k.w.(http.Flusher); ok {
			f.Flush()
		}
	}
	return err
}

// empty writes a response without a body.
func (k *sink) empty(status int) {
	k.phase = sinkClosed
	k.w.WriteHeader(status)
}

// open commits the response as an event stream and has it sent. first is written along
// with the headers; it may be empty.
func (k *sink) open(first []byte) error {
	k.begin(first)
	return k.flush()
}

// begin is open without the sending: for an event that follows at once.
//
// Specification: basic/transports/streamable-http (2026-07-28), receiving messages.
func (k *sink) begin(first []byte) {
	k.phase = sinkStreaming
	k.control = http.NewResponseController(k.w)
	if k.writes.after > 0 {
		// Each write has its own bound, and all together may take longer than the
		// http.Server's WriteTimeout.
		_ = k.control.SetWriteDeadline(time.Time{}) // or not supported: then there is none
	}
	h := k.w.Header()
	h["Content-Type"] = contentStream
	h["Cache-Control"] = cacheNever
	h["X-Accel-Buffering"] = accelOff
	k.w.WriteHeader(http.StatusOK)
	k.buffer = append(k.buffer, first...)
}

// event writes a message as an event. id is "" for streams that cannot be resumed.
func (k *sink) event(id string, msg []byte) error {
	k.append(id, msg)
	return k.flush()
}

// last writes the last event of a stream whose ServeHTTP returns as soon as this does:
// what is short goes out together with the end of the response.
func (k *sink) last(id string, msg []byte) error {
	k.append(id, msg)
	if k.shared || k.sent+len(k.buffer) > bigBody {
		return k.flush()
	}
	k.bound()
	defer k.unbound()
	return k.write()
}

func (k *sink) append(id string, msg []byte) {
	k.buffer = appendEvent(k.buffer, id, msg)
	k.identified = k.identified || id != ""
}

// retry tells the client when to come back, and from where.
func (k *sink) retry(id string, after time.Duration) error {
	k.buffer = appendEvent(appendRetry(k.buffer, after), id, nil)
	return k.flush()
}

// comment keeps the connection from being taken for dead.
func (k *sink) comment() error {
	k.buffer = append(k.buffer, ":\n\n"...)
	return k.flush()
}

// close ends a stream; what is written ends with ServeHTTP's return.
func (k *sink) close() {
	if k.phase == sinkStreaming {
		k.release()
	}
	k.phase = sinkClosed
}

// write writes the buffer, and may leave it to the end of the response to have it sent.
func (k *sink) write() error {
	k.written = time.Now()
	b := k.buffer
	k.buffer = b[:0]
	k.sent += len(b)
	if len(b) == 0 {
		return nil
	}
	_, err := k.w.Write(b)
	return err
}

// flush writes the buffer and has all that was written sent.
func (k *sink) flush() error {
	k.bound()
	defer k.unbound()
	if err := k.write(); err != nil {
		return err
	}
	// A writer that cannot flush, as of some middleware, sends when it likes to.
	if err := k.control.Flush(); err != nil && !notSupported(err) {
		return err
	}
	return nil
}

// bound bounds the write that comes.
func (k *sink) bound() {
	if k.writes.after > 0 {
		k.writes.set(&k.slow, k)
	}
}

// ring ends a write that has taken too long.
func (k *sink) ring() {
	// Or not supported: then the write may take its time.
	_ = http.NewResponseController(k.w).SetWriteDeadline(time.Now())
}

// unbound ends what bound has begun.
func (k *sink) unbound() {
	if k.slow.unset() {
		k.cut = true
	}
}

// release lifts the deadline if a write came to have one: the connection may serve further requests.
func (k *sink) release() {
	if k.cut {
		_ = http.NewResponseController(k.w).SetWriteDeadline(time.Time{})
	}
}

// appendEvent appends a message as a server-sent event. Messages hold no line breaks.
func appendEvent(b []byte, id string, msg []byte) []byte {
	if id != "" {
		b = append(b, "id: "...)
		b = append(b, id...)
		b = append(b, '\n')
	}
	if len(msg) > 0 {
		b = append(b, "event: message\n"...)
	}
	b = append(b, "data: "...)
	b = append(b, msg...)
	return append(b, "\n\n"...)
}

// appendRetry appends the field that says how long to wait before coming back, in milliseconds.
func appendRetry(b []byte, after time.Duration) []byte {
	b = append(b, "retry: "...)
	b = strconv.AppendInt(b, max(after.Milliseconds(), 0), 10)
	return append(b, '\n')
}
