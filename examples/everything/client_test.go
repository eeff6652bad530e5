package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// client drives a fixture over a session in memory, in one of the two eras.
type client struct {
	t            *testing.T
	fixture      *fixture
	session      *server.Session
	stateless    bool
	capabilities string // as JSON
	level        string // the log level asked for, "" for none
	lastID       int
}

const everyCapability = `{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}`

var eras = []struct {
	name      string
	stateless bool
}{{"handshake", false}, {"stateless", true}}

// inEachEra runs test in a bubble for each era, with a client that can do everything.
func inEachEra(t *testing.T, test func(t *testing.T, c *client)) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) { inBubble(t, era.stateless, everyCapability, test) })
	}
}

func inBubble(t *testing.T, stateless bool, capabilities string, test func(t *testing.T, c *client)) {
	bubble.Test(t, func(t *testing.T) {
		c := connect(t, stateless, capabilities)
		defer c.close()
		test(t, c)
	})
}

func connect(t *testing.T, stateless bool, capabilities string) *client {
	f := newFixture(&server.Options{Logger: slog.New(slog.DiscardHandler)})
	c := &client{t: t, fixture: f, stateless: stateless, capabilities: capabilities}
	c.session = f.server.Open(t.Context(), server.SessionOptions{Send: func([]byte) error { return nil }})
	if !stateless {
		answer := c.request("initialize", map[string]any{
			"protocolVersion": server.Version20251125, "capabilities": json.RawMessage(capabilities),
			"clientInfo": map[string]any{"name": "test", "version": "1"},
		}).result(t)
		require.Contains(t, string(answer), server.Version20251125)
		c.notify("notifications/initialized", nil)
	}
	return c
}

func (c *client) close() {
	c.session.Close(cancellation.Disconnect, "the test has ended")
	synctest.Wait()
	require.Empty(c.t, c.fixture.server.InFlight(), "handlers are left")
}

// request sends a request and waits until nothing moves any more.
func (c *client) request(method string, params map[string]any) *exchange {
	c.lastID++
	e := &exchange{id: c.lastID}
	if params == nil {
		params = map[string]any{}
	}
	meta, _ := params["_meta"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["progressToken"] = fmt.Sprintf("progress-%d", e.id)
	if c.stateless {
		meta[mcp.MetaKeyProtocolVersion] = server.Version20260728
		meta[mcp.MetaKeyClientCapabilities] = json.RawMessage(c.capabilities)
		if c.level != "" {
			meta[mcp.MetaKeyLogLevel] = c.level
		}
	}
	params["_meta"] = meta
	c.send(map[string]any{"jsonrpc": "2.0", "id": e.id, "method": method, "params": params}, e)
	return e
}

func (c *client) call(tool string, arguments map[string]any) *exchange {
	params := map[string]any{"name": tool}
	if arguments != nil {
		params["arguments"] = arguments
	}
	return c.request("tools/call", params)
}

func (c *client) notify(method string, params map[string]any) {
	c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params}, nil)
}

// cancel cancels a request as its client does.
func (c *client) cancel(e *exchange, reason string) {
	c.notify("notifications/cancelled", map[string]any{"requestId": e.id, "reason": reason})
}

// respond answers a request of the server.
func (c *client) respond(id json.RawMessage, result string) {
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": json.RawMessage(result)}, nil)
}

func (c *client) send(message map[string]any, e *exchange) {
	raw, err := json.Marshal(message)
	require.NoError(c.t, err)
	var reply server.Reply
	if e != nil {
		reply = e
	}
	c.session.Receive(raw, reply, nil, nil)
	synctest.Wait()
}

// events are the fixture's events for a tag, as cancel_events returns them,
// without their times.
func (c *client) events(tag string) []event {
	var list eventList
	c.call("cancel_events", map[string]any{"tag": tag}).structured(c.t, &list)
	for i := range list.Events {
		require.Positive(c.t, list.Events[i].AtNS)
		require.Equal(c.t, tag, list.Events[i].Tag)
		list.Events[i].AtNS, list.Events[i].Tag = 0, ""
	}
	return list.Events
}

// exchange is a request and what came back for it.
type exchange struct {
	id int

	mu       sync.Mutex
	sent     []json.RawMessage
	answer   json.RawMessage
	silenced bool
}

func (e *exchange) Send(msg []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, slices.Clone(msg))
	return nil
}

func (e *exchange) Answer(msg []byte, _ int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answer != nil {
		panic("answered twice")
	}
	e.answer = slices.Clone(msg)
}

func (e *exchange) Silence() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.silenced = true
}

func (e *exchange) answered() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answer != nil
}

// messages are what was sent with a method ahead of the answer.
func (e *exchange) messages(t *testing.T, method string) []message {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []message
	for _, raw := range e.sent {
		var m message
		require.NoError(t, json.Unmarshal(raw, &m))
		if m.Method == method {
			found = append(found, m)
		}
	}
	return found
}

// message is a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// reply is the answer, whatever it is.
func (e *exchange) reply(t *testing.T) message {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.NotNil(t, e.answer, "not answered")
	var m message
	require.NoError(t, json.Unmarshal(e.answer, &m))
	return m
}

// result is the result that must have come.
func (e *exchange) result(t *testing.T) json.RawMessage {
	t.Helper()
	m := e.reply(t)
	require.Nil(t, m.Error, "%s", e.answer)
	return m.Result
}

// toolResult is a tool's result as these tests see it.
type toolResult struct {
	Content           []map[string]any `json:"content"`
	StructuredContent json.RawMessage  `json:"structuredContent"`
	IsError           bool             `json:"isError"`
}

func (e *exchange) tool(t *testing.T) toolResult {
	t.Helper()
	var r toolResult
	require.NoError(t, json.Unmarshal(e.result(t), &r))
	return r
}

// text is the text that a tool must have answered, without an error.
func (e *exchange) text(t *testing.T) string {
	t.Helper()
	r := e.tool(t)
	require.False(t, r.IsError, "%v", r.Content)
	require.Len(t, r.Content, 1)
	require.Equal(t, "text", r.Content[0]["type"])
	return r.Content[0]["text"].(string)
}

// failure is the text of the error that a tool must have answered.
func (e *exchange) failure(t *testing.T) string {
	t.Helper()
	r := e.tool(t)
	require.True(t, r.IsError, "%v", r.Content)
	require.Len(t, r.Content, 1)
	return r.Content[0]["text"].(string)
}

func (e *exchange) structured(t *testing.T, into any) {
	t.Helper()
	r := e.tool(t)
	require.False(t, r.IsError, "%v", r.Content)
	require.NoError(t, json.Unmarshal(r.StructuredContent, into))
}

// silent checks that nothing was ever answered and that the stream is free.
func (e *exchange) silent(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Nil(t, e.answer, "%s", e.answer)
	require.True(t, e.silenced, "the stream is still open")
}
