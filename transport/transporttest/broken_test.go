package transporttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// call is a request of the client, as the broken server has seen it.
type call struct {
	id       string
	method   string
	tool     string
	token    string // the progress token, "" without one
	message  wire.Message
	answered bool
	asked    bool   // answered by a result that asks for input
	stopped  int    // cancels that were for it while it was in flight
	task     string // the id of the task that it has become, "" when it has not
	wishes   int    // tasks/cancel for that
}

// argument is an argument of a tool's call.
func (c *call) argument(name string) string {
	var p struct {
		Arguments map[string]json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(c.message.Params, &p) // without arguments there is none
	return string(p.Arguments[name])
}

// broken is a stream between a client and a good server, which makes it a bad
// one: fault decides what is passed on.
type broken struct {
	fault fault

	mu      sync.Mutex // guards the fields below
	calls   []*call    // in the order of their coming
	asked   map[string]wire.Message
	cancels int
	eof     bool
	client  io.WriteCloser // to the client
	server  io.WriteCloser // to the server
	down    bool           // shut down
}

// fault is how a server is broken. Nil functions break nothing. They are called with
// broken.mu held.
type fault struct {
	// request and cancel get what the client sends; false keeps it from the server.
	// chunk is what came in the same write.
	request func(b *broken, c *call, chunk []wire.Message) bool
	cancel  func(b *broken, m wire.Message, target *call, chunk []wire.Message) bool
	other   func(b *broken, m wire.Message) bool
	// answer and message get what the server sends; false keeps it from the client.
	answer  func(b *broken, c *call, m wire.Message) bool
	message func(b *broken, m wire.Message) bool
	// end gets the end of the input; false keeps it from the server.
	end func(b *broken) bool
	// deaf does not hear that it is to shut down.
	deaf bool
}

// shutDown notes that the server is asked to shut down. It reports whether that is not
// heard.
func (b *broken) shutDown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = true
	return b.fault.deaf
}

// toClient writes a line to the client.
func (b *broken) toClient(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	go func() { _, _ = io.WriteString(b.client, text+"\n") }() // a client that is gone gets nothing
}

// toServer writes a line to the server.
func (b *broken) toServer(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	go func() { _, _ = io.WriteString(b.server, text+"\n") }()
}

// later does something after a while.
func (b *broken) later(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		f()
	})
}

// answerFor is an answer that nobody should give.
func answerFor(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"too late"}],"resultType":"complete"}}`, id)
}

// find is the last call with that very id.
func (b *broken) find(id string) *call {
	for i := len(b.calls) - 1; i >= 0; i-- {
		if wire.SameID(b.calls[i].id, id) {
			return b.calls[i]
		}
	}
	return nil
}

// task is the call that has become the task that a request names, or nil.
func (b *broken) task(request *call) *call {
	var id string
	if json.Unmarshal(request.message.Param("taskId"), &id) != nil || id == "" {
		return nil
	}
	for _, c := range b.calls {
		if c.task == id {
			return c
		}
	}
	return nil
}

// flying are the calls in flight.
func (b *broken) flying() []*call {
	var all []*call
	for _, c := range b.calls {
		if !c.answered && c.stopped == 0 {
			all = append(all, c)
		}
	}
	return all
}

// fromClient passes on what the client sends, a write at a time.
func (b *broken) fromClient(r io.Reader) {
	buffer := make([]byte, 4<<20)
	for {
		n, err := r.Read(buffer)
		var chunk []wire.Message
		var lines [][]byte
		for line := range bytes.SplitSeq(buffer[:n], []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			m, _ := wire.Parse(line) // every client's line is a message
			chunk = append(chunk, m)
			lines = append(lines, line)
		}
		for i, m := range chunk {
			b.mu.Lock()
			pass := b.received(m, chunk)
			b.mu.Unlock()
			if pass {
				_, _ = b.server.Write(append(bytes.Clone(lines[i]), '\n'))
			}
		}
		if err != nil {
			b.mu.Lock()
			b.eof = true
			pass := b.fault.end == nil || b.fault.end(b)
			b.mu.Unlock()
			if pass {
				b.server.Close()
			}
			return
		}
	}
}

func (b *broken) received(m wire.Message, chunk []wire.Message) bool {
	switch {
	case m.Method == "notifications/cancelled" && m.ID == nil:
		b.cancels++
		target := b.find(string(m.Param("requestId")))
		pass := b.fault.cancel == nil || b.fault.cancel(b, m, target, chunk)
		if target != nil {
			target.stopped++
		}
		return pass
	case m.IsRequest():
		c := &call{id: string(m.ID), method: m.Method, message: m}
		_ = json.Unmarshal(m.Param("name"), &c.tool) // other methods have none
		var meta map[string]json.RawMessage
		_ = json.Unmarshal(m.Param("_meta"), &meta)
		c.token = string(meta["progressToken"])
		t := b.task(c)
		if t != nil && m.Method == "tasks/cancel" {
			t.wishes++
		}
		if b.fault.request != nil && !b.fault.request(b, c, chunk) {
			return false
		}
		b.calls = append(b.calls, c)
		return true
	}
	return b.fault.other == nil || b.fault.other(b, m)
}

// fromServer passes on what the server sends.
func (b *broken) fromServer(r io.Reader) {
	buffer := make([]byte, 4<<20)
	var rest []byte
	for {
		n, err := r.Read(buffer)
		rest = append(rest, buffer[:n]...)
		for {
			line, after, whole := bytes.Cut(rest, []byte("\n"))
			if !whole {
				break
			}
			rest = bytes.Clone(after)
			m, _ := wire.Parse(line) // every line of a good server is a message
			b.mu.Lock()
			pass := b.sent(m)
			b.mu.Unlock()
			if pass {
				_, _ = b.client.Write(append(bytes.Clone(line), '\n'))
			}
		}
		if err != nil {
			b.client.Close()
			return
		}
	}
}

func (b *broken) sent(m wire.Message) bool {
	if m.IsResponse() {
		c := b.find(string(m.ID))
		if c == nil {
			return true
		}
		c.answered = true
		c.asked = c.method == "tools/call" && strings.Contains(string(m.Result), `"input_required"`)
		var result struct {
			TaskID string `json:"taskId"`
		}
		if c.method == "tools/call" && json.Unmarshal(m.Result, &result) == nil {
			c.task = result.TaskID
		}
		return b.fault.answer == nil || b.fault.answer(b, c, m)
	}
	if m.IsRequest() {
		b.asked[string(m.ID)] = m
	}
	return b.fault.message == nil || b.fault.message(b, m)
}
