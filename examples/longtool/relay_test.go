package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	relayedCall     = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":"call-1"}}}`
	relayedCancel   = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
	relayedProgress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-1","progress":1}}`
	relayedAnswer   = `{"jsonrpc":"2.0","id":5,"result":{}}`
)

// relayed is a relay before a server that answers calls with handler, and
// anything else as MCP servers do.
func relayed(t *testing.T, handler http.HandlerFunc) (client *http.Client, endpoint string, tap *tap) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), methodCall) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		handler(w, r)
	}))
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	tap = newTap(closed)
	relay, err := newRelay(t.Context(), u.Host, tap)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		relay.close()
	})
	return &http.Client{Transport: transport}, "http://" + relay.address(), tap
}

func post(ctx context.Context, client *http.Client, endpoint, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}

func event(w http.ResponseWriter, message string) {
	fmt.Fprintf(w, ": a comment\r\nid: 1\ndata: %s\n\n", message)
	_ = http.NewResponseController(w).Flush()
}

// awaitEnd waits until the server has closed the response to the call.
func awaitEnd(t *testing.T, tap *tap) {
	t.Helper()
	for {
		tap.mu.Lock()
		more, ended := tap.more, false
		for _, l := range tap.lines {
			ended = ended || l.method == closed && !l.sent
		}
		tap.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-more:
		case <-time.After(surely):
			require.Fail(t, "the server did not close the response")
		}
	}
}

// A relay that could not hear what a server writes to a client that has gone
// would prove silence every time.
func TestRelayHearsWhatComesAfterTheClose(t *testing.T) {
	t.Parallel()
	past := &Stop{Requested: time.Now().Add(-time.Hour)}
	future := &Stop{Requested: time.Now().Add(time.Hour)}
	for _, c := range []struct {
		name  string
		after []string // what the server writes when the client is gone
		stop  *Stop    // its record
		want  silence
	}{
		{"silence", nil, past, silence{}},
		{"somebody else's message", []string{`{"jsonrpc":"2.0","id":6,"result":{}}`}, past, silence{}},
		{"a late report", []string{relayedProgress}, past, silence{after: 1}},
		{"a report on its way", []string{relayedProgress}, future, silence{crossed: 1}},
		{"a late answer", []string{relayedAnswer}, past, silence{after: 1, answered: true}},
		{"an answer to a call that is recorded as stopped", []string{relayedAnswer}, future, silence{after: 1, answered: true}},
		{"an answer to a call that is not", []string{relayedAnswer}, nil, silence{crossed: 1, answered: true}},
		{"both", []string{relayedProgress, relayedAnswer}, past, silence{after: 2, answered: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, endpoint, tap := relayed(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				event(w, relayedProgress)
				<-r.Context().Done() // the server learns of it
				for _, message := range c.after {
					event(w, message)
				}
			})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			response, err := post(ctx, client, endpoint, relayedCall)
			require.NoError(t, err)
			defer response.Body.Close()
			require.NoError(t, readUntil(response.Body, `"progress":1`))
			stop()
			sent, err := tap.stopSent(t.Context(), "call-1")
			require.NoError(t, err)
			require.True(t, sent)
			cancel, err := post(t.Context(), client, endpoint, relayedCancel)
			require.NoError(t, err)
			require.NoError(t, cancel.Body.Close())
			awaitEnd(t, tap)

			got := tap.silence("call-1", c.stop)
			require.Positive(t, got.ended)
			got.ended = 0
			c.want.id, c.want.closed, c.want.posted = "5", true, http.StatusAccepted
			require.Equal(t, c.want, got)
		})
	}
}

// A response that is complete is not one that the client closed.
func TestRelayLeavesCompleteResponsesAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"application/json", "text/event-stream"} {
		client, endpoint, tap := relayed(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			if kind == "application/json" {
				fmt.Fprint(w, relayedAnswer)
				return
			}
			event(w, relayedProgress)
			event(w, relayedAnswer)
		})
		for range 3 { // on one connection
			response, err := post(t.Context(), client, endpoint, relayedCall)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Contains(t, string(body), relayedAnswer)
		}
		require.Equal(t, silence{id: "5", closed: true}, tap.silence("call-1", nil))
	}
}

// A call that was stopped before its request went out was never sent.
func TestRelaySeesThatNothingWasSent(t *testing.T) {
	t.Parallel()
	tap := newTap(closed)
	sent, err := tap.stopSent(t.Context(), "call-1")
	require.NoError(t, err)
	require.False(t, sent)
	require.Equal(t, silence{closed: true}, tap.silence("call-1", nil))
	require.Contains(t, wireLayer(tap.silence("call-1", nil)).facts[0], "nothing went out")
}

// A server that is gone closes the connection, as it would without the relay.
func TestRelayWithoutAServer(t *testing.T) {
	t.Parallel()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	relay, err := newRelay(t.Context(), nobody.Addr().String(), newTap(closed))
	require.NoError(t, err)
	defer relay.close()
	_, err = post(t.Context(), &http.Client{Transport: &http.Transport{}}, "http://"+relay.address(), relayedCall)
	require.Error(t, err)
}
