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
	control *http.ResponseController // made when a stream is opened
	timeout time.Duration            // bounds each write; 0 or less: no bound
	shared  bool                     // other responses share the connection, so that even a short write may block

	phase   sinkPhase
	written time.Time // when the stream was last written to
	buffer  []byte    // the event being written; reused
	length  [1]string // the value of the Content-Length header

	identified bool // an event with an id was written
}

func newSink(w http.ResponseWriter, r *http.Request, o *Options) sink {
	return sink{w: w, timeout: o.WriteTimeout, shared: r.ProtoMajor != 1}
}

// A sink moves from fresh to streaming to closed, or from fresh to closed.
type sinkPhase uint8

const (
	sinkFresh sinkPhase = iota // nothing was written
	sinkStreaming
	sinkClosed
)

// bigBody is the size from which on a JSON body may block on a client that does not read.
const bigBody = 32 << 10

// json writes the whole response and has it sent.
func (k *sink) json(status int, body []byte) error {
	k.phase = sinkClosed
	if k.timeout > 0 && (k.shared || len(body) > bigBody) {
		k.control = http.NewResponseController(k.w)
		k.deadline()
		defer k.release()
	}
	k.length[0] = strconv.Itoa(len(body))
	err := writeJSON(k.w, status, body, k.length[:])
	// The answer may be written while the handler still runs, and so long before
	// ServeHTTP returns.
	if f, ok := k.w.(http.Flusher); ok {
		f.Flush()
	}
	return err
}

// empty writes a response without a body.
func (k *sink) empty(status int) {
	k.phase = sinkClosed
	k.w.WriteHeader(status)
}

// open commits the response as an event stream. first is written along with the
// headers; it may be empty.
//
// Specification: basic/transports/streamable-http (2026-07-28), receiving messages.
func (k *sink) open(first []byte) error {
	k.phase = sinkStreaming
	k.control = http.NewResponseController(k.w)
	h := k.w.Header()
	h["Content-Type"] = contentStream
	h["Cache-Control"] = cacheNever
	h["X-Accel-Buffering"] = accelOff
	k.w.WriteHeader(http.StatusOK)
	return k.write(first)
}

// event writes a message as an event. id is "" for streams that cannot be resumed.
func (k *sink) event(id string, msg []byte) error {
	k.buffer = appendEvent(k.buffer[:0], id, msg)
	k.identified = k.identified || id != ""
	return k.write(k.buffer)
}

// retry tells the client when to come back, and from where.
func (k *sink) retry(id string, after time.Duration) error {
	return k.write(appendEvent(appendRetry(nil, after), id, nil))
}

// comment keeps the connection from being taken for dead.
func (k *sink) comment() error { return k.write([]byte(":\n\n")) }

// close ends a stream; what is written ends with ServeHTTP's return.
func (k *sink) close() {
	if k.phase == sinkStreaming {
		k.release()
	}
	k.phase = sinkClosed
}

func (k *sink) write(b []byte) error {
	k.written = time.Now()
	k.deadline()
	if len(b) > 0 {
		if _, err := k.w.Write(b); err != nil {
			return err
		}
	}
	// A writer that cannot flush, as of some middleware, sends when it likes to.
	if err := k.control.Flush(); err != nil && !notSupported(err) {
		return err
	}
	return nil
}

// deadline bounds the write that comes.
func (k *sink) deadline() {
	if k.timeout > 0 {
		_ = k.control.SetWriteDeadline(time.Now().Add(k.timeout)) // or not supported: then there is none
	}
}

// release takes the deadline off: the connection may serve further requests.
func (k *sink) release() {
	if k.timeout > 0 {
		_ = k.control.SetWriteDeadline(time.Time{})
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
