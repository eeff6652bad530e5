package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// HTTP is a client of one HTTP endpoint.
type HTTP struct {
	Log       *Log
	URL       string
	Transport http.RoundTripper // HTTP/1.1, so that a dropped exchange is a closed connection
	Header    http.Header       // of each request, as it is written: no canonical form is made

	last atomic.Int64 // number of the last exchange
}

// NewTransport returns a transport that speaks HTTP/1.1 only.
func NewTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{Protocols: protocols, DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second}
}

// Exchange is one HTTP request, and its response as it comes in.
type Exchange struct {
	Stream string // what entries about it call it

	log     *Log
	control bool
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing follows

	mu      sync.Mutex // guards the fields below
	status  int        // 0: no response so far
	header  http.Header
	eventID string // the last one received
	dropped bool   // by the client
	err     error  // why there is no response, or why it has ended early
}

// Do sends a request. It does not wait for anything.
func (h *HTTP) Do(method string, header http.Header, body []byte) *Exchange {
	return h.do(method, header, body, false)
}

// DoControl is Do for messages that only find out what has happened.
func (h *HTTP) DoControl(method string, header http.Header, body []byte) *Exchange {
	return h.do(method, header, body, true)
}

func (h *HTTP) do(method string, header http.Header, body []byte, control bool) *Exchange {
	ctx, cancel := context.WithCancel(context.Background())
	x := &Exchange{
		Stream: method + " " + strconv.FormatInt(h.last.Add(1), 10),
		log:    h.Log, control: control, cancel: cancel, done: make(chan struct{}),
	}
	e := sent(x.Stream, body, control)
	if body == nil {
		e.Text = method + " " + h.URL
	}
	h.Log.Add(e)
	go x.run(ctx, h, method, header, body)
	return x
}

func (x *Exchange) run(ctx context.Context, h *HTTP, method string, header http.Header, body []byte) {
	err := x.exchange(ctx, h, method, header, body)
	x.cancel()
	x.end(err)
}

// exchange sends the request and logs the response. The error is why there is none, or why it
// is not whole.
func (x *Exchange) exchange(ctx context.Context, h *HTTP, method string, header http.Header, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, method, h.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, from := range []http.Header{h.Header, header} {
		for name, values := range from {
			request.Header[name] = values
		}
	}
	response, err := h.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	x.mu.Lock()
	x.status, x.header = response.StatusCode, response.Header
	x.mu.Unlock()
	x.add(Entry{Kind: Opened, Text: response.Status + " " + kind})
	if kind == "text/event-stream" {
		return x.events(response.Body)
	}
	// What a client takes for an answer has to be called one; what only says no, need not.
	return x.whole(response.Body, kind == "application/json" || response.StatusCode >= 300)
}

// whole reads a body that is one message, or nothing.
func (x *Exchange) whole(r io.Reader, isJSON bool) error {
	text, err := io.ReadAll(io.LimitReader(r, maxLine))
	switch {
	case len(bytes.TrimSpace(text)) == 0:
	case isJSON:
		x.message(text, "")
	default:
		x.add(Entry{Kind: Garbage, Text: string(text)})
	}
	return err
}

func (x *Exchange) message(text []byte, eventID string) bool {
	m, err := Parse(text)
	if err != nil {
		return x.add(Entry{Kind: Garbage, Text: string(text), EventID: eventID})
	}
	return x.add(Entry{Kind: Received, Message: m, EventID: eventID})
}

func (x *Exchange) add(e Entry) bool { return x.log.Add(x.entry(e)) }

func (x *Exchange) entry(e Entry) Entry {
	e.Stream, e.Control = x.Stream, x.control
	return e
}

func (x *Exchange) end(err error) {
	x.mu.Lock()
	x.err = err
	text := "end of the response"
	switch {
	case x.dropped:
		text = "dropped by the client"
	case err != nil:
		text = "the response ended early: " + err.Error()
	}
	x.mu.Unlock()
	x.log.conclude(x.entry(Entry{Kind: Closed, Text: text}), x.done)
}

// Drop closes the connection without waiting for the rest of the response.
func (x *Exchange) Drop() {
	x.mu.Lock()
	x.dropped = true
	x.mu.Unlock()
	x.cancel()
}

// Done is closed when nothing follows, for whatever reason. The log says so in the same
// instant.
func (x *Exchange) Done() <-chan struct{} { return x.done }

// Status is the response's status, 0 before it has come.
func (x *Exchange) Status() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.status
}

// Head is what the response's head says in words: its status and type, and what else
// may tell why it is no answer. It is "" before that has come.
func (x *Exchange) Head() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status == 0 {
		return ""
	}
	text := fmt.Sprintf("HTTP status %d", x.status)
	for _, name := range []string{"Content-Type", "Content-Encoding", "Location", "WWW-Authenticate"} {
		if value := x.header.Get(name); value != "" {
			text += fmt.Sprintf(", %s: %.200s", name, value)
		}
	}
	return text
}

// Header is a header of the response, "" before that has come.
func (x *Exchange) Header(name string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.header.Get(name)
}

// EventID is the id of the last event that had one.
func (x *Exchange) EventID() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.eventID
}

// Err is why there was no response, or why it ended early; nil when it is whole.
func (x *Exchange) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}
