package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// message is what the server writes.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Messages []struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
	} `json:"params"`
	Result *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool                       `json:"isError"`
		Inputs  map[string]json.RawMessage `json:"inputRequests"`
		State   string                     `json:"requestState"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

// text is that of a result; everything else is an error.
func (m *message) text() (string, error) {
	if m.Result == nil || m.Result.IsError || len(m.Result.Content) == 0 {
		return "", fmt.Errorf("no result: %+v %s", m.Result, m.Error)
	}
	return m.Result.Content[0].Text, nil
}

type object = map[string]any

func callParams(stateless bool, tool, text string, ms int, more object) object {
	meta := object{"progressToken": text}
	if stateless {
		meta[mcp.MetaKeyProtocolVersion] = server.Version20260728
		meta[mcp.MetaKeyClientCapabilities] = object{"sampling": object{}}
	}
	params := object{"name": tool, "arguments": object{"text": text, "ms": ms}, "_meta": meta}
	for name, value := range more {
		params[name] = value
	}
	return params
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // it holds nothing that could not be encoded
	}
	return raw
}

func request(id int64, method string, params object) []byte {
	return encode(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

var initializeParams = object{"protocolVersion": server.Version20251125, "capabilities": object{"sampling": object{}}, "clientInfo": object{"name": "soak", "version": "1"}}

func sampled(text string) object {
	return object{"role": "assistant", "model": "m", "content": object{"type": "text", "text": text}}
}

// line is a client of one stream, shared by many.
type line struct {
	writing sync.Mutex // serializes writes
	out     io.WriteCloser

	mu      sync.Mutex
	next    int64
	waiting map[string]chan message // by id; an answer to anything else is a fault
	fault   error                   // the first
}

func newLine(r io.Reader, w io.WriteCloser) *line {
	l := &line{out: w, waiting: map[string]chan message{}}
	go l.read(r)
	return l
}

func (l *line) write(raw []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.out.Write(append(raw, '\n'))
	return err
}

func (l *line) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			l.fail(fmt.Errorf("no message: %.200q", raw))
			continue
		}
		switch {
		case m.Method == "sampling/createMessage":
			go func() {
				_ = l.write(encode(object{"jsonrpc": "2.0", "id": m.ID, "result": sampled("re " + m.Params.Messages[0].Content.Text)}))
			}()
		case m.Method == "":
			l.mu.Lock()
			waiting := l.waiting[string(m.ID)]
			delete(l.waiting, string(m.ID))
			l.mu.Unlock()
			if waiting == nil {
				l.fail(fmt.Errorf("an answer to what was cancelled, or to nothing: %.200q", raw))
				continue
			}
			waiting <- m
		}
	}
}

func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil {
		l.fault = err
	}
}

// start sends a request.
func (l *line) start(method string, params object) (id int64, answer chan message, err error) {
	answer = make(chan message, 1)
	l.mu.Lock()
	l.next++
	id = l.next
	l.waiting[fmt.Sprint(id)] = answer
	l.mu.Unlock()
	return id, answer, l.write(request(id, method, params))
}

// cancel cancels a request, whose answer may be on its way already, but comes in order before the
// answer to whatever is sent after the cancel. It reports whether there was one.
func (l *line) cancel(id int64, answer chan message) (answered bool, err error) {
	if err := l.write(encode(object{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": object{"requestId": id}})); err != nil {
		return false, err
	}
	_, after, err := l.start("tools/call", callParams(false, "echo", "after", 0, nil))
	if err != nil {
		return false, err
	}
	<-after
	l.mu.Lock()
	delete(l.waiting, fmt.Sprint(id))
	l.mu.Unlock()
	select {
	case <-answer:
		return true, nil
	default:
		return false, nil
	}
}

// web is a client over HTTP.
type web struct {
	http *http.Client
	// drops is for requests that may be dropped. A connection of net/http's that a dropped request has just
	// given back can fail the next one with the dropped one's error.
	drops *http.Client
	url   string
}

// post sends a message and reads what comes back; see is called for each message and each event id.
func (w *web) post(ctx context.Context, session, method, name string, raw []byte, see func(m *message, eventID string)) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case session != "":
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("MCP-Protocol-Version", server.Version20251125)
	case method != "initialize":
		r.Header.Set("MCP-Protocol-Version", server.Version20260728)
		r.Header.Set("Mcp-Method", method)
		if name != "" {
			r.Header.Set("Mcp-Name", name)
		}
	}
	return w.do(r, see)
}

func (w *web) do(r *http.Request, see func(m *message, eventID string)) (http.Header, error) {
	client := w.http
	if r.Context().Done() != nil {
		client = w.drops
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, body)
	}
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		line = strings.TrimSpace(line)
		if id, ok := strings.CutPrefix(line, "id:"); ok {
			see(nil, strings.TrimSpace(id))
		}
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			line = strings.TrimSpace(data)
		}
		if strings.HasPrefix(line, "{") {
			var m message
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				return nil, fmt.Errorf("no message: %.200q", line)
			}
			see(&m, "")
		}
		if errors.Is(err, io.EOF) {
			return response.Header, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// notify sends what has no answer.
func (w *web) notify(session string, raw []byte) error {
	_, err := w.post(context.Background(), session, "", "", raw, func(*message, string) {})
	return err
}

// open opens a session.
func (w *web) open() (string, error) {
	header, err := w.post(context.Background(), "", "initialize", "", request(1, "initialize", initializeParams), func(*message, string) {})
	if err != nil {
		return "", err
	}
	session := header.Get("Mcp-Session-Id")
	return session, w.notify(session, encode(object{"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

func (w *web) delete(session string) error {
	r, err := http.NewRequest(http.MethodDelete, w.url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Mcp-Session-Id", session)
	_, err = w.do(r, func(*message, string) {})
	return err
}
