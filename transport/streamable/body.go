package streamable

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// The bodies of requests: how much is read of them, and for how long. What is not read here is read by
// net/http, which knows no bound of time for it.

// firstRead is how much of a body is read before more memory is given to it.
const firstRead = 64 << 10

// errTooLarge is why a body over Options.MaxBody is not read to its end.
var errTooLarge = errors.New("streamable: the body is too large")

// readBody reads the whole body into a buffer of its own, which the request
// keeps. It answers and returns false when there is no whole body to be had.
func (h *Handler) readBody(p *post) bool {
	err := h.readWatched(p)
	switch {
	case errors.Is(err, errTooLarge):
		h.tooLarge(p)
	case err != nil:
		h.incomplete(p, err)
	}
	return err == nil
}

// readWatched reads the body within Options.BodyTimeout.
func (h *Handler) readWatched(p *post) error {
	whole := false
	defer func() { h.calm(p, whole) }() // also when a Body of somebody's middleware panics
	if h.options.BodyTimeout > 0 && p.r.ContentLength != 0 {
		h.bodies.set(&p.slow, p)
	}
	err := p.read(h.options.MaxBody)
	whole = err == nil
	return err
}

// read reads the body, at most limit bytes; 0 or less: no limit.
func (p *post) read(limit int64) error {
	n := p.r.ContentLength
	if limit > 0 && n > limit {
		return errTooLarge
	}
	size := int64(512)
	if n >= 0 {
		size = min(n, firstRead) // a length alone must not cost memory
	}
	body := make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			if int64(len(body)) == n {
				break
			}
			grown := int64(2 * cap(body))
			if n >= 0 {
				grown = min(grown, n)
			}
			body = append(make([]byte, 0, max(grown, 512)), body...)
		}
		got, err := p.r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+got]
		if limit > 0 && int64(len(body)) > limit {
			return errTooLarge
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	p.body = body
	return nil
}

// ring ends the reading of a body that takes too long: who sends a byte now and then must
// not hold a connection for ever.
func (p *post) ring() { p.readUntil(time.Now()) }

// calm ends the watch over the body. What follows a whole one on the connection may take its
// time; what is left of another one, which net/http may want to read, may not.
func (h *Handler) calm(p *post, whole bool) {
	switch rang := p.slow.unset(); {
	case whole && rang:
		p.readUntil(time.Time{})
	case !whole && !rang && h.options.BodyTimeout > 0:
		p.readUntil(time.Now().Add(h.options.BodyTimeout))
	}
}

// readUntil sets the deadline for reading, unless one of the http.Server is in force, which
// is not ours to change.
func (p *post) readUntil(t time.Time) { readUntil(p.w, p.r, t) }

func readUntil(w http.ResponseWriter, r *http.Request, t time.Time) {
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ReadTimeout > 0 {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(t) // or not supported: then the body may take its time
}

// unread bounds how long the body of a request may take that is refused without a look at it: over
// HTTP/1 net/http reads what is left of it, for as long as it takes, before it sends the response.
func (h *Handler) unread(w http.ResponseWriter, r *http.Request) {
	unread(w, r, h.options.BodyTimeout)
}

func unread(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 && timeout > 0 {
		readUntil(w, r, time.Now().Add(timeout))
	}
}

// skipBody reads the body of a request that means nothing by it, before anybody waits for the response.
// It answers and returns false when the body is too large or does not come.
func (h *Handler) skipBody(w http.ResponseWriter, r *http.Request) bool {
	return r.ContentLength == 0 || h.readBody(&post{w: w, r: r})
}

// hangUp ends the connection with the response: what is left of the body must not be read,
// nor taken for a request. Over HTTP/2 it is a stream of its own, and ends alone.
func (p *post) hangUp() {
	if p.r.ProtoMajor == 1 {
		p.w.Header().Set("Connection", "close")
	}
}

func (h *Handler) tooLarge(p *post) {
	p.hangUp()
	refuse(p.w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", h.options.MaxBody))
}

// incomplete deals with a client that went away, or stalled, in the middle of its message.
func (h *Handler) incomplete(p *post, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) { // a bound of somebody else's middleware
		refuse(p.w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
		return
	}
	h.options.Logger.Debug("request body ended early", "error", err)
	p.hangUp()
	refuse(p.w, http.StatusBadRequest, "the body is incomplete")
}
