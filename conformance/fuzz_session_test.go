package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/stretchr/testify/assert"
)

// What the HTTP fuzzer does right: sessions that it opens and deletes, and requests that must
// be answered.

// post sends a good message and returns the answer; nil, and the test fails, when there is none.
func (w *web) post(session, version string, message M) *webAnswer {
	raw := encodeLine(message)
	header := w.header(session, version)
	if version == newest {
		w.names(header, raw)
	}
	w.ledger.sent(raw, version)
	ctx, cancel := context.WithTimeout(w.life, fuzzPatience)
	defer cancel()
	a, err := w.send(ctx, http.MethodPost, header, bytes.NewReader(raw), version)
	if err != nil {
		w.t.Errorf("no answer to %s: %v", raw, err)
		return nil
	}
	return a
}

// rpc makes a request of the stateless era.
func (w *web) rpc(method string, params M) *received {
	params["_meta"] = M{"io.modelcontextprotocol/protocolVersion": newest, "io.modelcontextprotocol/clientCapabilities": M{"extensions": M{"io.modelcontextprotocol/tasks": M{}}}}
	return w.only(w.post("", newest, M{"jsonrpc": "2.0", "id": "probe", "method": method, "params": params}))
}

func (w *web) only(a *webAnswer) *received {
	if a == nil || len(a.messages) == 0 {
		return nil
	}
	return &a.messages[len(a.messages)-1]
}

func (w *web) stats() (s fuzzStats) {
	if m := w.rpc("tools/call", M{"name": "cancel_stats"}); assert.NotNil(w.t, m) && assert.NotNil(w.t, m.Result, "%s", m.Error) {
		assert.NoError(w.t, json.Unmarshal(m.Result.Structured, &s))
	}
	return s
}

// open opens a session.
func (w *web) open() {
	version := pick(w.f, fuzzVersions[:4]...)
	a := w.post("", "", M{"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": M{"protocolVersion": version, "capabilities": w.f.capabilities(), "clientInfo": M{"name": "fuzzer", "version": "1"}}})
	if m := w.only(a); m == nil || m.Result == nil || a.session == "" {
		w.t.Errorf("no session could be opened: %+v", a)
		return
	}
	w.session, w.version = a.session, version
	w.post(w.session, version, M{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// alive tells whether the server, and the session, still answer.
func (w *web) alive() bool {
	if m := w.rpc("tools/call", M{"name": "echo", "arguments": M{"text": "still here"}}); m == nil || m.Result == nil {
		w.t.Errorf("the server does not answer: %+v", m)
		return false
	}
	if w.session == "" {
		return true
	}
	a := w.post(w.session, w.version, M{"jsonrpc": "2.0", "id": "probe", "method": "tools/call", "params": M{"name": "echo", "arguments": M{"text": "still here"}}})
	if m := w.only(a); m == nil || m.Result == nil {
		w.t.Errorf("the session is lost: %+v", a)
		return false
	}
	return true
}

// delete ends a session, after which it must be gone.
func (w *web) delete(session string) {
	ctx, cancel := context.WithTimeout(context.Background(), fuzzPatience)
	defer cancel()
	a, err := w.send(ctx, http.MethodDelete, w.header(session, ""), nil, w.version)
	if err != nil || a.status >= 300 {
		w.t.Errorf("a session could not be deleted: %v %+v", err, a)
	}
	delete(w.sessions, session)
	if w.session == session {
		gone := w.post(session, w.version, M{"jsonrpc": "2.0", "id": "probe", "method": "ping"})
		if gone != nil && gone.status != http.StatusNotFound {
			w.t.Errorf("a deleted session answers: %+v", gone)
		}
		w.session, w.version = "", ""
	}
}

// finish gives up what is open.
func (w *web) finish() {
	for _, session := range slices.Sorted(maps.Keys(w.sessions)) {
		w.delete(session)
	}
	w.end()
	w.http.CloseIdleConnections()
}

// note is fault for what is not about a message.
func (l *ledger) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault("%s", fmt.Sprintf(format, args...))
}
