package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// M is a JSON object of a test.
type M = map[string]any

// peer is a client at the other end of a session. It sends on the test's
// goroutine, which thus is the session's reading goroutine, and records what
// the server writes. Its methods fail the test when something is not as they say.
type peer struct {
	t       testing.TB
	s       *server.Server
	ss      *server.Session
	version string
	extra   *server.Extra
	start   func(*server.Call) // nil: a goroutine for each request
	caps    M                  // what it declares that it can do

	mu      sync.Mutex
	lines   []*message
	replies map[string]*reply // the newest per request id
	all     []*reply
	changed chan struct{} // closed and replaced with every change
}

// message is what the server wrote.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`

	Raw string    `json:"-"`
	At  time.Time `json:"-"`
	On  string    `json:"-"` // id of the request whose reply it was written to, "" for the session's own stream
}

type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// peerOptions describe a peer; the zero value speaks the newest handshake-era revision.
type peerOptions struct {
	Version   string // a revision; "": 2025-11-25
	ID        string // the session's
	Unordered bool   // as POSTs are
	Scope     bool   // requests of the stateless era without a session, as over HTTP
	Caps      M
	Extra     *server.Extra
	Start     func(*server.Call)
	NoSend    bool // the session has no stream of its own
	Raw       bool // without a handshake
}

// newPeer opens a session and, where the revision has one, does the handshake. At
// the end of the test it closes the session and checks that every request was
// settled exactly once.
func newPeer(t testing.TB, s *server.Server, o peerOptions) *peer {
	t.Helper()
	if o.Version == "" {
		o.Version = server.Version20251125
	}
	if o.Caps == nil {
		o.Caps = M{}
	}
	p := &peer{
		t: t, s: s, version: o.Version, caps: o.Caps, extra: o.Extra, start: o.Start,
		replies: map[string]*reply{}, changed: make(chan struct{}),
	}
	if o.Scope {
		p.ss = s.Stateless()
		p.extra = &server.Extra{Stateless: true}
		if o.Extra != nil {
			*p.extra = *o.Extra
			p.extra.Stateless = true
		}
	} else {
		so := server.SessionOptions{ID: o.ID, Unordered: o.Unordered, Send: func(msg []byte) error {
			p.record("", msg)
			return nil
		}}
		if o.NoSend {
			so.Send = nil
		}
		p.ss = s.Open(t.Context(), so)
	}
	t.Cleanup(p.end)
	if p.handshake() && !o.Raw {
		require.Nil(t, p.Initialize(o.Version).Error)
	}
	return p
}

func (p *peer) handshake() bool { return p.version != server.Version20260728 }

func (p *peer) end() {
	if p.ss != p.s.Stateless() {
		p.ss.Close(cancellation.Disconnect, "the test is over")
	} else {
		p.ss.CancelAll(cancellation.Disconnect, "the test is over")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	if err := p.ss.Wait(ctx); err != nil {
		p.t.Errorf("handlers of the session are left: %v", p.s.InFlight())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.all {
		r.check(p.t)
	}
}

// Initialize does the handshake and returns the answer.
func (p *peer) Initialize(version string) *message {
	p.t.Helper()
	p.Request("init", "initialize", M{
		"protocolVersion": version, "capabilities": p.caps, "clientInfo": M{"name": "peer", "version": "0"},
	})
	m := p.Answer("init")
	p.Notify("notifications/initialized", nil)
	return m
}

// Raw gives the server one line as it is. id is the request's id as JSON text,
// "" when the line is no request.
func (p *peer) Raw(id, line string) *reply {
	r := &reply{peer: p, id: id, line: line}
	p.mu.Lock()
	if id != "" {
		p.replies[id] = r
		p.all = append(p.all, r)
	}
	p.mu.Unlock()
	p.ss.Receive([]byte(line), r, p.extra, p.start)
	return r
}

// Line makes the line of a request.
func (p *peer) Line(id any, method string, params M) string {
	m := M{"jsonrpc": "2.0", "method": method}
	if id != nil {
		m["id"] = id
	}
	if params = p.params(params); params != nil {
		m["params"] = params
	}
	return encode(p.t, m)
}

// params adds the _meta that the peer's revision wants.
func (p *peer) params(params M) M {
	if p.handshake() {
		return params
	}
	params = maps.Clone(params)
	if params == nil {
		params = M{}
	}
	meta := M{
		mcp.MetaKeyProtocolVersion: p.version, mcp.MetaKeyClientCapabilities: p.caps,
		mcp.MetaKeyClientInfo: M{"name": "peer", "version": "0"},
	}
	if own, ok := params["_meta"].(M); ok {
		maps.Copy(meta, own)
	}
	params["_meta"] = meta
	return params
}

// Request sends a request.
func (p *peer) Request(id any, method string, params M) *reply {
	return p.Raw(idText(p.t, id), p.Line(id, method, params))
}

// Call calls a tool. meta, if given, is added to the request's _meta.
func (p *peer) Call(id any, tool string, arguments any, meta ...M) *reply {
	return p.Request(id, "tools/call", callParams(tool, arguments, meta...))
}

func callParams(tool string, arguments any, meta ...M) M {
	params := M{"name": tool}
	if arguments != nil {
		params["arguments"] = arguments
	}
	if len(meta) > 0 {
		params["_meta"] = meta[0]
	}
	return params
}

// Notify sends a notification.
func (p *peer) Notify(method string, params M) { p.Raw("", p.Line(nil, method, params)) }

// Cancel cancels a request, as notifications/cancelled does.
func (p *peer) Cancel(id any, reason string) {
	params := M{"requestId": id}
	if reason != "" {
		params["reason"] = reason
	}
	p.Raw("", encode(p.t, M{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
}

// Respond answers a request that the server has sent.
func (p *peer) Respond(to *message, result any) {
	p.Raw("", encode(p.t, M{"jsonrpc": "2.0", "id": to.ID, "result": result}))
}

// RespondError answers a request of the server with an error.
func (p *peer) RespondError(to *message, code int, text string) {
	p.Raw("", encode(p.t, M{"jsonrpc": "2.0", "id": to.ID, "error": M{"code": code, "message": text}}))
}

// Answer waits for the response to a request and returns it.
func (p *peer) Answer(id any) *message {
	p.t.Helper()
	var found *message
	p.await(fmt.Sprintf("an answer to %v", id), func() bool {
		found = p.answerLocked(idText(p.t, id))
		return found != nil
	})
	return found
}

func (p *peer) answerLocked(id string) *message {
	r := p.replies[id]
	if r == nil {
		return nil
	}
	return r.answer()
}

// Result waits for the response to a request, which must be a result, and
// decodes it.
func (p *peer) Result(id any) M {
	p.t.Helper()
	m := p.Answer(id)
	require.Nil(p.t, m.Error, "%s", m.Raw)
	return m.object(p.t, m.Result)
}

// Text waits for the result of a tool and returns its first text. It must be no error.
func (p *peer) Text(id any) string {
	p.t.Helper()
	m := p.Answer(id)
	require.False(p.t, m.IsError(), "%s", m.Raw)
	return m.Text()
}

// Asked waits for the n-th request (from 1) that the server sends with that method.
func (p *peer) Asked(method string, n int) *message {
	p.t.Helper()
	var found *message
	p.await(fmt.Sprintf("%s number %d", method, n), func() bool {
		if all := p.sentLocked(method); len(all) >= n {
			found = all[n-1]
		}
		return found != nil
	})
	return found
}

// Sent returns what the server has sent with that method so far.
func (p *peer) Sent(method string) []*message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sentLocked(method)
}

func (p *peer) sentLocked(method string) []*message {
	var all []*message
	for _, m := range p.lines {
		if m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// Lines returns all that the server has written so far.
func (p *peer) Lines() []*message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*message(nil), p.lines...)
}

// Silent checks that a request was silenced and has no answer, now that the server
// has nothing left to do at this instant.
func (p *peer) Silent(id any) {
	p.t.Helper()
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	text := idText(p.t, id)
	r := p.replies[text]
	require.NotNil(p.t, r, "no request %s", text)
	require.True(p.t, r.silenced(), "request %s was not silenced", text)
	require.Nil(p.t, r.answer(), "request %s was answered", text)
}

// Pending checks that a request is neither answered nor silenced.
func (p *peer) Pending(id any) {
	p.t.Helper()
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.replies[idText(p.t, id)]
	require.False(p.t, r.silenced() || r.answer() != nil, "request %v is settled", id)
}

// settle waits until everything that can happen now has happened.
func (p *peer) settle() {
	if inBubble() {
		synctest.Wait()
	}
}

func (p *peer) record(on string, raw []byte) *message {
	m := &message{Raw: string(raw), At: time.Now(), On: on}
	if raw[0] != '[' && json.Unmarshal(raw, m) != nil || !json.Valid(raw) {
		p.t.Errorf("the server wrote what is no message: %q", raw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, m)
	p.changedLocked()
	return m
}

func (p *peer) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until ok, which is called with mu locked.
func (p *peer) await(what string, ok func() bool) {
	p.t.Helper()
	late := time.NewTimer(patience())
	defer late.Stop()
	for {
		p.mu.Lock()
		done, changed := ok(), p.changed
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			p.t.Fatalf("no %s; the server wrote %s", what, p.dump())
		}
	}
}

func (p *peer) dump() string {
	text := ""
	for _, m := range p.Lines() {
		text += "\n\t" + m.Raw
	}
	return text
}
