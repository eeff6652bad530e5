package transporttest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// brokenWeb stands before a good handler and makes it a bad one.
type brokenWeb struct {
	next  http.Handler
	fault func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool

	mu      sync.Mutex // guards the fields below
	running []*running
}

// running is a request that is being served, or was dropped by its client.
type running struct {
	session, id, tool string
	stateless         bool
	arguments         string
	cancel            context.CancelFunc
	dropped           bool
	stopped           bool
}

func (b *brokenWeb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	m, _ := wire.Parse(body) // no body is no message
	if b.fault != nil && b.fault(b, w, r, m) {
		return
	}
	b.pass(w, r, m)
}

// pass lets the good handler serve a request.
func (b *brokenWeb) pass(w http.ResponseWriter, r *http.Request, m wire.Message) {
	if m.Method == "notifications/cancelled" {
		if target := b.find(session(r), string(m.Param("requestId"))); target != nil {
			b.mu.Lock()
			target.stopped = true
			b.mu.Unlock()
		}
	}
	client := r.Context()
	ctx, cancel := context.WithCancel(client)
	defer cancel()
	var added []*running
	for _, one := range m.Each() {
		if one.IsRequest() {
			added = append(added, b.add(r, one, cancel))
		}
	}
	b.next.ServeHTTP(w, r.WithContext(ctx))
	for _, one := range added {
		b.settle(one, client.Err() != nil)
	}
}

// settle notes that a request's response has ended.
func (b *brokenWeb) settle(one *running, dropped bool) {
	b.mu.Lock()
	one.dropped = dropped
	b.mu.Unlock()
	if !dropped {
		b.remove(one)
	}
}

func session(r *http.Request) string { return r.Header.Get("Mcp-Session-Id") }

func (b *brokenWeb) add(r *http.Request, m wire.Message, cancel context.CancelFunc) *running {
	one := &running{session: session(r), id: string(m.ID), stateless: session(r) == "", cancel: cancel}
	_ = json.Unmarshal(m.Param("name"), &one.tool) // other methods have none
	one.arguments = string(m.Param("arguments"))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = append(b.running, one)
	return one
}

func (b *brokenWeb) remove(one *running) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.running {
		if b.running[i] == one {
			b.running = append(b.running[:i], b.running[i+1:]...)
			return
		}
	}
}

func (b *brokenWeb) find(session, id string) *running {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.running) - 1; i >= 0; i-- {
		if one := b.running[i]; one.session == session && wire.SameID(one.id, id) {
			return one
		}
	}
	return nil
}
