package model_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// kind is how a client is connected.
type kind uint8

const (
	stdioHandshake kind = iota
	stdioStateless
	httpSession
	httpStateless
	kinds
)

func (k kind) http() bool      { return k >= httpSession }
func (k kind) stateless() bool { return k == stdioStateless || k == httpStateless }
func (k kind) String() string {
	return [...]string{"stdio", "stdio-stateless", "http", "http-stateless"}[k]
}

// peer is a client.
type peer struct {
	w       *world
	kind    kind
	index   int
	session string         // Mcp-Session-Id
	in      io.WriteCloser // stdin of a server on stdio

	holder   map[string]*request  // the last request with an id
	finished map[string]bool      // ids that a request has had and given back
	early    map[string]time.Time // cancels that came before their request
}

func (w *world) connect(k kind, index int) *peer {
	p := &peer{w: w, kind: k, index: index, holder: map[string]*request{}, finished: map[string]bool{}, early: map[string]time.Time{}}
	if !k.http() {
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		p.in = clientOut
		w.background.Go(func() {
			_ = stdio.ServeStream(context.Background(), w.s, serverIn, serverOut, nil) // how it ends is not this test's matter
			serverOut.Close()
			serverIn.Close()
		})
		w.background.Go(func() {
			lines := bufio.NewReader(clientIn)
			for {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					return
				}
				w.receive(p, nil, bytes.TrimSpace(line))
			}
		})
	}
	if !k.stateless() {
		p.handshake()
	}
	return p
}

func (p *peer) handshake() {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":%q,"capabilities":{"sampling":{}},"clientInfo":{"name":"m","version":"1"}}}`, server.Version20251125)
	ready := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	if p.kind.http() {
		r, err := p.w.client.Do(p.post(context.Background(), text, ""))
		if err != nil {
			p.w.fail("no handshake: %v", err)
			return
		}
		p.session = r.Header.Get("Mcp-Session-Id")
		r.Body.Close()
		p.notify(ready)
		return
	}
	p.write(text)
	p.write(ready)
}

// write writes a line to a server on stdio.
func (p *peer) write(text string) {
	p.w.log("%d %s > %s", p.index, p.kind, text)
	for _, line := range p.w.fault.toServer(p, text) {
		_, _ = io.WriteString(p.in, line+"\n") // a server that is gone shows elsewhere
	}
}

// notify sends what has no answer.
func (p *peer) notify(text string) {
	if !p.kind.http() {
		p.write(text)
		return
	}
	p.w.log("%d %s > %s", p.index, p.kind, text)
	for _, line := range p.w.fault.toServer(p, text) {
		r, err := p.w.client.Do(p.post(context.Background(), line, "notifications/cancelled"))
		if err != nil {
			p.w.fail("POST: %v", err)
			return
		}
		r.Body.Close()
	}
}

func (p *peer) post(ctx context.Context, text, method string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://mem.example/mcp", strings.NewReader(text))
	if err != nil {
		panic(err) // the URL is a constant
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	p.head(r)
	if p.kind == httpStateless {
		r.Header.Set("Mcp-Method", method)
	}
	return r
}

func (p *peer) head(r *http.Request) {
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
		r.Header.Set("MCP-Protocol-Version", server.Version20251125)
	}
	if p.kind == httpStateless {
		r.Header.Set("MCP-Protocol-Version", server.Version20260728)
	}
}

// send sends a request; its tag is its progress token as well.
func (p *peer) send(r *request, more map[string]any) {
	meta := map[string]any{"progressToken": r.tag}
	if p.kind.stateless() {
		meta[mcp.MetaKeyProtocolVersion] = server.Version20260728
		meta[mcp.MetaKeyClientCapabilities] = map[string]any{"sampling": map[string]any{}}
	}
	params := map[string]any{"name": r.tool, "arguments": map[string]any{"tag": r.workTag}, "_meta": meta}
	for name, value := range more {
		params[name] = value
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(r.id), "method": "tools/call", "params": params})
	if err != nil {
		panic(err) // it holds nothing that could not be encoded
	}
	if !p.kind.http() {
		p.write(string(raw))
		return
	}
	p.w.log("%d %s > %s", p.index, p.kind, raw)
	ctx, cancel := context.WithCancel(context.Background())
	r.stream = &stream{drop: cancel}
	hr := p.post(ctx, string(raw), "tools/call")
	if p.kind == httpStateless {
		hr.Header.Set("Mcp-Name", r.tool)
	}
	p.w.background.Go(func() { p.read(r, r.stream, hr) })
}

// stream is the response to a request over HTTP. The world's mu guards it.
type stream struct {
	drop  context.CancelFunc
	ended bool   // by the server
	last  string // event id
}

// read reads a response to its end.
func (p *peer) read(r *request, s *stream, hr *http.Request) {
	defer s.drop()
	response, err := p.w.client.Do(hr)
	if err != nil {
		return // dropped; a refusal has a status
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		line = bytes.TrimSpace(line)
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			line = bytes.TrimSpace(data)
		} else if id, ok := bytes.CutPrefix(line, []byte("id:")); ok {
			p.w.mu.Lock()
			s.last = string(bytes.TrimSpace(id))
			p.w.mu.Unlock()
			line = nil
		}
		if len(line) > 0 && line[0] == '{' {
			p.w.receive(p, r, bytes.Clone(line))
		}
		if err != nil {
			p.w.mu.Lock()
			s.ended = err == io.EOF
			p.w.mu.Unlock()
			return
		}
	}
}

// resume reads on where a dropped stream was left.
func (p *peer) resume(r *request) bool {
	p.w.mu.Lock()
	last := r.stream.last
	p.w.mu.Unlock()
	if last == "" {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	hr, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mem.example/mcp", nil)
	if err != nil {
		panic(err) // the URL is a constant
	}
	hr.Header.Set("Accept", "text/event-stream")
	hr.Header.Set("Last-Event-ID", last)
	p.head(hr)
	p.w.log("%d %s > GET after %s", p.index, p.kind, last)
	r.stream = &stream{drop: cancel, last: last}
	p.w.background.Go(func() { p.read(r, r.stream, hr) })
	return true
}

// end ends the session: the stream, or with DELETE.
func (p *peer) end() {
	p.w.log("%d %s > the end", p.index, p.kind)
	if !p.kind.http() {
		p.in.Close()
		return
	}
	hr, err := http.NewRequest(http.MethodDelete, "http://mem.example/mcp", nil)
	if err != nil {
		panic(err) // the URL is a constant
	}
	p.head(hr)
	r, err := p.w.client.Do(hr)
	if err != nil {
		p.w.fail("DELETE: %v", err)
		return
	}
	r.Body.Close()
}
