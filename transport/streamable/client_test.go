package streamable_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// call is one HTTP request to be.
type call struct {
	method string
	body   string
	header http.Header
	ctx    context.Context
}

func newCall(method, body string) call {
	c := call{method: method, body: body, header: http.Header{}}
	if method == http.MethodPost {
		c.header.Set("Content-Type", "application/json")
		c.header.Set("Accept", "application/json, text/event-stream")
	} else {
		c.header.Set("Accept", "text/event-stream")
	}
	return c
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func message(id any, method string, params M) M {
	m := M{"jsonrpc": "2.0", "method": method}
	if id != nil {
		m["id"] = id
	}
	if params != nil {
		m["params"] = params
	}
	return m
}

// modern is a request of the stateless era; id nil: a notification.
func modern(id any, method string, params M) call {
	p := M{"_meta": M{mcp.MetaKeyProtocolVersion: server.Version20260728, mcp.MetaKeyClientCapabilities: M{}}}
	for k, v := range params {
		if k == "_meta" {
			for mk, mv := range v.(M) {
				p["_meta"].(M)[mk] = mv
			}
			continue
		}
		p[k] = v
	}
	c := newCall(http.MethodPost, encode(message(id, method, p)))
	c.header.Set("MCP-Protocol-Version", server.Version20260728)
	c.header.Set("Mcp-Method", method)
	for _, name := range []string{"name", "uri"} {
		if text, ok := params[name].(string); ok {
			c.header.Set("Mcp-Name", text)
		}
	}
	return c
}

func modernTool(id any, name string, arguments M) call {
	return modern(id, "tools/call", M{"name": name, "arguments": arguments})
}

// classic is a message of the handshake era; id nil: a notification.
func classic(id any, method string, params M) call {
	return newCall(http.MethodPost, encode(message(id, method, params)))
}

func classicTool(id any, name string, arguments M) call {
	return classic(id, "tools/call", M{"name": name, "arguments": arguments})
}

func cancelOf(id any, reason string) call {
	return classic(nil, "notifications/cancelled", M{"requestId": id, "reason": reason})
}

// with returns the call with a header set; "" removes it.
func (c call) with(name, value string) call {
	c.header = c.header.Clone()
	if value == "" {
		c.header.Del(name)
	} else {
		c.header.Set(name, value)
	}
	return c
}

func (c call) within(ctx context.Context) call {
	c.ctx = ctx
	return c
}

// progress asks for progress reports under a token.
func progress(token any) M { return M{"progressToken": token} }

// answer is a complete HTTP response.
type answer struct {
	status int
	header http.Header
	body   string
}

// wire is a JSON-RPC message as it came.
type wire struct {
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

func (e *endpoint) send(c call) (*http.Response, error) {
	ctx := c.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	r, err := http.NewRequestWithContext(ctx, c.method, e.url, strings.NewReader(c.body))
	require.NoError(e.t, err)
	r.Header = c.header.Clone()
	if e.session != "" && r.Header.Get("Mcp-Session-Id") == "" {
		r.Header.Set("Mcp-Session-Id", e.session)
	}
	if e.bearer != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+e.bearer)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	return e.client.Do(r)
}

// do makes a request and reads the whole response.
func (e *endpoint) do(c call) answer {
	e.t.Helper()
	resp, err := e.send(c)
	require.NoError(e.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(e.t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// message is the one JSON-RPC message of a response, in whatever form it came.
func (a answer) message(t testing.TB) wire {
	t.Helper()
	text := a.body
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		events := a.events(t)
		require.NotEmpty(t, events)
		text = events[len(events)-1].data
	}
	var m wire
	require.NoErrorf(t, json.Unmarshal([]byte(text), &m), "%d %q", a.status, a.body)
	return m
}

// code is the JSON-RPC error code of a response, 0 for a result.
func (a answer) code(t testing.TB) int {
	t.Helper()
	m := a.message(t)
	if m.Error == nil {
		return 0
	}
	return m.Error.Code
}

// event is a server-sent event, or a comment.
type event struct {
	id, data, retry string
	comment         bool
}

func (ev event) message(t testing.TB) wire {
	t.Helper()
	var m wire
	require.NoErrorf(t, json.Unmarshal([]byte(ev.data), &m), "%q", ev.data)
	return m
}

func (a answer) events(t testing.TB) []event {
	t.Helper()
	require.Equal(t, "text/event-stream", a.header.Get("Content-Type"))
	return parseEvents(t, a.body)
}

func parseEvents(t testing.TB, text string) (all []event) {
	t.Helper()
	for block := range strings.SplitSeq(text, "\n\n") {
		if block != "" {
			all = append(all, parseEvent(t, block))
		}
	}
	return all
}

func parseEvent(t testing.TB, block string) (ev event) {
	t.Helper()
	for line := range strings.SplitSeq(block, "\n") {
		name, value, ok := strings.Cut(line, ":")
		require.Truef(t, ok, "a line without a colon: %q", line)
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "":
			ev.comment = true
		case "id":
			ev.id = value
		case "data":
			ev.data = value
		case "retry":
			ev.retry = value
		case "event":
			require.Equal(t, "message", value)
		default:
			require.FailNow(t, "unknown field", "%q", line)
		}
	}
	return ev
}

// flow is a response that is read as it comes.
type flow struct {
	t      testing.TB
	resp   *http.Response
	events chan event // closed at the end of the response
	err    error      // how it ended, nil for a proper end; valid once events is closed
}

// open makes a request and returns when its headers have come.
func (e *endpoint) open(c call) *flow {
	e.t.Helper()
	resp, err := e.send(c)
	require.NoError(e.t, err)
	f := &flow{t: e.t, resp: resp, events: make(chan event, 4096)}
	go f.read()
	e.t.Cleanup(f.drop)
	return f
}

func (f *flow) read() {
	defer close(f.events)
	lines := bufio.NewReader(f.resp.Body)
	var block bytes.Buffer
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			if err != io.EOF {
				f.err = err
			}
			return
		case line == "\n":
			f.events <- parseEvent(f.t, strings.TrimSuffix(block.String(), "\n"))
			block.Reset()
		default:
			block.WriteString(line)
		}
	}
}

// drop closes the response, as a client does that loses interest.
func (f *flow) drop() { _ = f.resp.Body.Close() }

// next waits for an event.
func (f *flow) next() event {
	f.t.Helper()
	select {
	case ev, ok := <-f.events:
		require.True(f.t, ok, "the response has ended")
		return ev
	case <-time.After(time.Hour):
		require.FailNow(f.t, "no event came")
		return event{}
	}
}

// end waits for the end of the response and returns what came before it.
func (f *flow) end() (rest []event) {
	f.t.Helper()
	late := time.NewTimer(time.Hour) // one for all: a stream that is kept alive has events for ever
	defer late.Stop()
	for {
		select {
		case ev, ok := <-f.events:
			if !ok {
				return rest
			}
			rest = append(rest, ev)
		case <-late.C:
			require.FailNow(f.t, "the response did not end")
		}
	}
}

// initialize opens a session in a revision and returns an endpoint whose requests are
// made in it.
func (e *endpoint) initialize(version string, capabilities M) *endpoint {
	e.t.Helper()
	if capabilities == nil {
		capabilities = M{}
	}
	a := e.do(classic(0, "initialize", M{
		"protocolVersion": version, "capabilities": capabilities, "clientInfo": M{"name": "test", "version": "1"},
	}))
	require.Equalf(e.t, http.StatusOK, a.status, "%s", a.body)
	in := *e
	in.session = a.header.Get("Mcp-Session-Id")
	require.NotEmpty(e.t, in.session)
	require.Equal(e.t, http.StatusAccepted, in.do(classic(nil, "notifications/initialized", nil)).status)
	return &in
}
