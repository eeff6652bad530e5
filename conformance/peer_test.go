package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// M is a JSON object.
type M = map[string]any

const (
	newestHandshake = "2025-11-25"
	newest          = "2026-07-28"
)

// peer is a client of our own over HTTP, for what the others cannot do. It speaks one of
// the two eras.
type peer struct {
	url     string
	session string // of the handshake era; "" for the stateless one
	http    *http.Client
	lastID  *atomic.Int64
}

// newPeer returns a peer of the stateless era with connections of its own.
func newPeer(t *testing.T, url string) *peer {
	transport := &http.Transport{MaxIdleConnsPerHost: 2}
	t.Cleanup(transport.CloseIdleConnections)
	return &peer{url: url, http: &http.Client{Transport: transport}, lastID: new(atomic.Int64)}
}

// initialize opens a session, which ends with the test if not before.
func (p *peer) initialize(t *testing.T) *peer {
	t.Helper()
	in := p.open(t)
	t.Cleanup(func() { in.end(t) })
	return in
}

// open opens a session.
func (p *peer) open(t *testing.T) *peer {
	t.Helper()
	in := *p
	response, err := in.post(t.Context(), M{"id": in.next(), "method": "initialize", "params": M{
		"protocolVersion": newestHandshake, "capabilities": M{}, "clientInfo": M{"name": "peer", "version": "1"},
	}})
	require.NoError(t, err)
	defer drain(response)
	require.Equal(t, http.StatusOK, response.StatusCode)
	in.session = response.Header.Get("Mcp-Session-Id")
	require.NotEmpty(t, in.session)
	in.notify(t, "notifications/initialized", nil)
	return &in
}

// end ends the session, if it has not ended.
func (p *peer) end(t *testing.T) {
	t.Helper()
	request, err := http.NewRequest(http.MethodDelete, p.url, nil)
	require.NoError(t, err)
	request.Header.Set("Mcp-Session-Id", p.session)
	response, err := p.http.Do(request)
	require.NoError(t, err)
	drain(response)
}

func (p *peer) next() int64 { return p.lastID.Add(1) }

func (p *peer) notify(t *testing.T, method string, params M) {
	t.Helper()
	message := M{"method": method}
	if params != nil {
		message["params"] = params
	}
	response, err := p.post(t.Context(), message)
	require.NoError(t, err)
	drain(response)
	require.Equal(t, http.StatusAccepted, response.StatusCode)
}

// request is the message of a request.
func (p *peer) request(method string, params M) M {
	if params == nil {
		params = M{}
	}
	return M{"id": p.next(), "method": method, "params": params}
}

// tool is the message of a tool's call that wants progress.
func (p *peer) tool(name string, arguments M) M {
	m := p.request("tools/call", M{"name": name, "arguments": arguments})
	m["params"].(M)["_meta"] = M{"progressToken": m["id"]}
	return m
}

// post sends a message. The caller closes the body.
func (p *peer) post(ctx context.Context, message M) (*http.Response, error) {
	message["jsonrpc"] = "2.0"
	header := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
	}
	params, _ := message["params"].(M)
	switch method := message["method"].(string); {
	case p.session != "":
		header.Set("Mcp-Session-Id", p.session)
		header.Set("MCP-Protocol-Version", newestHandshake)
	case method != "initialize":
		header.Set("MCP-Protocol-Version", newest)
		header.Set("Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			header.Set("Mcp-Name", name)
		}
		meta, _ := params["_meta"].(M)
		if meta == nil {
			meta = M{}
			params["_meta"] = meta
		}
		meta["io.modelcontextprotocol/protocolVersion"] = newest
		meta["io.modelcontextprotocol/clientCapabilities"] = M{}
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	request.Header = header
	return p.http.Do(request)
}

func drain(response *http.Response) {
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// structured calls a tool at once and decodes its structured content.
func (p *peer) structured(ctx context.Context, tool string, arguments M, into any) error {
	response, err := p.post(ctx, p.tool(tool, arguments))
	if err != nil {
		return err
	}
	defer drain(response)
	var m struct {
		Result struct{ StructuredContent json.RawMessage }
		Error  json.RawMessage
	}
	for line := range lines(response.Body) {
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return err
		}
	}
	if m.Error != nil || len(m.Result.StructuredContent) == 0 {
		return fmt.Errorf("%s: status %d, error %s", tool, response.StatusCode, m.Error)
	}
	return json.Unmarshal(m.Result.StructuredContent, into)
}

// pullLines is lines for callers that take one at a time.
func pullLines(response *http.Response) (next func() (string, bool), stop func()) {
	return iter.Pull(lines(response.Body))
}

// lines yields the messages of a response, whatever its form, as they come.
func lines(body io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		scanner := bufio.NewScanner(body)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			line := strings.TrimPrefix(scanner.Text(), "data: ")
			if strings.HasPrefix(line, "{") && !yield(line) {
				return
			}
		}
	}
}

// fixtureEvent is an event that the server's fixtures have recorded.
type fixtureEvent struct {
	Tag, Event, Origin, Reason string
	Step                       int
	AtNS                       int64 `json:"at_ns"`
}

// events are those of a tag.
func (p *peer) events(t *testing.T, tag string) []fixtureEvent {
	t.Helper()
	var list struct{ Events []fixtureEvent }
	require.NoError(t, p.structured(t.Context(), "cancel_events", M{"tag": tag}, &list))
	return list.Events
}

// event waits for an event of a tag.
func (p *peer) event(t *testing.T, tag, name string, within time.Duration) fixtureEvent {
	t.Helper()
	var found fixtureEvent
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var list struct{ Events []fixtureEvent }
		require.NoError(c, p.structured(t.Context(), "cancel_events", M{"tag": tag}, &list))
		for _, e := range list.Events {
			if e.Event == name {
				found = e
				return
			}
		}
		require.Failf(c, "not recorded", "event %s of %s; there are %+v", name, tag, list.Events)
	}, within, 20*time.Millisecond)
	return found
}

// stats are figures about the server as of now.
type stats struct {
	Goroutines      int
	InFlight        int `json:"in_flight"`
	Lingering       int
	Parked          int
	Sessions        int
	DroppedMessages int `json:"dropped_messages"`
	Unresponsive    int
}

func (p *peer) stats(t require.TestingT, ctx context.Context) stats {
	var s stats
	require.NoError(t, p.structured(ctx, "cancel_stats", M{}, &s))
	return s
}

// notifyIn sends a notification in a session that somebody else has opened.
func (p *peer) notifyIn(t *testing.T, session, method string, params M) {
	t.Helper()
	in := *p
	in.session = session
	in.notify(t, method, params)
}
