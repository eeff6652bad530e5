package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A tap notes every message between the client and the server, in either
// direction, and changes none. Over stdio it is fed by a [tapped] transport,
// over HTTP by a [relay].
type tap struct {
	// stop is the method of the line with which the client stops a call.
	stop string
	// pulse is the relay's, nil over stdio; it is set before the first line.
	pulse *pulse

	mu    sync.Mutex
	lines []line
	more  chan struct{} // closed and replaced whenever a line is noted
}

// A line is one message on the wire, or the end of a response.
type line struct {
	at     time.Time
	sent   bool // by the client
	method string
	id     string // of the request it is, answers, cancels or ends
	token  string // the progress token of the request it is or reports on
	status int    // of an HTTP response without a message; else 0
}

const (
	methodCall      = "tools/call"
	methodCancelled = "notifications/cancelled"
	// closed is the method of a line that is no message: one side closed the
	// connection while the response to a request was open.
	closed = "(closed)"
)

func newTap(stop string) *tap {
	return &tap{stop: stop, more: make(chan struct{})}
}

// note adds a message and returns its line.
func (t *tap) note(message jsonrpc.Message, sent bool) line {
	l := line{sent: sent}
	switch m := message.(type) {
	case *jsonrpc.Response:
		l.id = text(m.ID.Raw())
	case *jsonrpc.Request:
		l.method = m.Method
		var params struct {
			Meta struct {
				ProgressToken any `json:"progressToken"`
			} `json:"_meta"`
			ProgressToken any `json:"progressToken"`
			RequestID     any `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &params) // what does not parse names nothing
		switch {
		case m.ID.IsValid():
			l.id, l.token = text(m.ID.Raw()), text(params.Meta.ProgressToken)
		case m.Method == methodCancelled:
			l.id = text(params.RequestID)
		default:
			l.token = text(params.ProgressToken)
		}
	}
	t.add(l)
	return l
}

// add adds a line, as of now.
func (t *tap) add(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.at = time.Now()
	t.lines = append(t.lines, l)
	close(t.more)
	t.more = make(chan struct{})
}

// text is an id or a token as JSON writes it, so that 1 and "1" differ; absent
// is the empty string.
func text(v any) string {
	if v == nil {
		return ""
	}
	written, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(written)
}

// sendWait is how long a message may take from a client whose call has returned
// to the tap.
const sendWait = 2 * time.Second

// stopSent waits until the client, for which the call with the given progress
// token is over, has stopped it on the wire as well. It is false if the call
// was never sent: Stop came first.
func (t *tap) stopSent(ctx context.Context, token string) (bool, error) {
	never := time.After(sendWait)
	for last := false; ; {
		t.mu.Lock()
		more := t.more
		id, at := t.find(token)
		t.mu.Unlock()
		if at >= 0 {
			return true, nil
		}
		if id != "" {
			never, last = nil, false
		}
		if last {
			return false, nil
		}
		select {
		case <-more:
		case <-never:
			last = true
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// find is the id of the call and where it was stopped, -1 before it is. It is
// called with mu held.
func (t *tap) find(token string) (id string, at int) {
	at = -1
	for i, l := range t.lines {
		switch {
		case l.sent && l.token == text(token) && l.method == methodCall:
			id = l.id
		case l.sent && id != "" && l.id == id && l.method == t.stop:
			at = i
		}
	}
	return id, at
}
