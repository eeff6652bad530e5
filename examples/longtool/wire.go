package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tap sits between the client and its transport and notes every message that
// passes, in either direction. It changes none.
type tap struct {
	transport mcp.Transport

	mu    sync.Mutex
	lines []line
	more  chan struct{} // closed and replaced whenever a line is noted
}

// A line is one message on the wire.
type line struct {
	at     time.Time
	sent   bool // by the client
	method string
	id     string // of the request it is, answers or cancels
	token  string // the progress token of the request it is or reports on
}

func newTap(on mcp.Transport) *tap {
	return &tap{transport: on, more: make(chan struct{})}
}

// Connect implements [mcp.Transport].
func (t *tap) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := t.transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tapped{connection, t}, nil
}

type tapped struct {
	mcp.Connection
	tap *tap
}

// Write notes the message before it is written, so that everything the tap
// sees after it may have been caused by it.
func (c *tapped) Write(ctx context.Context, message jsonrpc.Message) error {
	c.tap.note(message, true)
	return c.Connection.Write(ctx, message)
}

func (c *tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err == nil {
		c.tap.note(message, false)
	}
	return message, err
}

func (t *tap) note(message jsonrpc.Message, sent bool) {
	l := line{at: time.Now(), sent: sent}
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
		case m.Method == "notifications/cancelled":
			l.id = text(params.RequestID)
		default:
			l.token = text(params.ProgressToken)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
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

// A silence is what the tap saw of one call after it was cancelled.
type silence struct {
	id string
	// crossed are messages for the call that were read between the cancel and
	// the answer to a later request. They may have been on their way already.
	crossed int
	// after are messages for the call that came later than that answer, hence
	// later than the server had read the cancel: the protocol wants none.
	after int
	// answered says that the call was answered, however early.
	answered bool
}

// cancelSent waits until the cancel of the call with the given progress token
// has left the client.
func (t *tap) cancelSent(ctx context.Context, token string) error {
	for {
		t.mu.Lock()
		more := t.more
		_, at := t.find(token)
		t.mu.Unlock()
		if at >= 0 {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// silence reports on the call with the given progress token.
func (t *tap) silence(token string) silence {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, at := t.find(token)
	s := silence{id: id}
	if at < 0 {
		return s
	}
	later := map[string]bool{} // requests that the client sent after the cancel
	server := false            // the server has answered one of them
	for _, l := range t.lines[at+1:] {
		switch {
		case l.sent:
			if l.method != "" && l.id != "" {
				later[l.id] = true
			}
		case l.id == id || l.token == text(token):
			if server {
				s.after++
			} else {
				s.crossed++
			}
			s.answered = s.answered || l.method == ""
		case l.method == "" && later[l.id]:
			server = true
		}
	}
	return s
}

// find is the id of the call and where its cancel stands, -1 before it is sent.
func (t *tap) find(token string) (id string, at int) {
	at = -1
	for i, l := range t.lines {
		switch {
		case l.sent && l.token == text(token) && l.method == "tools/call":
			id = l.id
		case l.sent && id != "" && l.id == id && l.method == "notifications/cancelled":
			at = i
		}
	}
	return id, at
}
