package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
)

// connections are the HTTP connections of a client, seen from outside of it: it is the
// client's http.RoundTripper.
type connections struct {
	mu   sync.Mutex
	lost []context.CancelFunc // guarded by mu; one per call, called by lose
	came int                  // guarded by mu; how often the client came back for the rest of a stream
}

// requestID is a context key for a *json.RawMessage that the id of the context's request
// is written to.
type requestID struct{}

var errLost = errors.New("the connection was lost")

// RoundTrip implements http.RoundTripper.
func (c *connections) RoundTrip(r *http.Request) (*http.Response, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		_ = json.Unmarshal(body, &m) // not all are requests
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	c.mu.Lock()
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
		c.came++
	}
	if m.Method != "tools/call" {
		c.mu.Unlock()
		return http.DefaultTransport.RoundTrip(r)
	}
	ctx, lose := context.WithCancel(r.Context())
	c.lost = append(c.lost, lose)
	if id, ok := r.Context().Value(requestID{}).(*json.RawMessage); ok {
		*id = m.ID
	}
	c.mu.Unlock()
	response, err := http.DefaultTransport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		lose()
		return nil, err
	}
	response.Body = &losable{ReadCloser: response.Body, lost: ctx, client: r.Context()}
	return response, nil
}

// losable is a body whose connection can be lost, which looks like any broken connection and not
// like a context that the client does not know.
type losable struct {
	io.ReadCloser
	lost, client context.Context
}

func (l *losable) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if err != nil && l.lost.Err() != nil && l.client.Err() == nil {
		err = errLost
	}
	return n, err
}

// lose breaks the connections of all calls.
func (c *connections) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, lose := range c.lost {
		lose()
	}
	c.lost = nil
}

// resumed says how often the client has come back for the rest of a stream.
func (c *connections) resumed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.came
}
