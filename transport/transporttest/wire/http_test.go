package wire_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exchanged is what is logged of a request to a handler.
func exchanged(t *testing.T, handler http.HandlerFunc) (*wire.Exchange, []wire.Entry) {
	t.Helper()
	web := httptest.NewServer(handler)
	defer web.Close()
	transport := wire.NewTransport()
	defer transport.CloseIdleConnections()
	log := wire.NewLog()
	h := &wire.HTTP{Log: log, URL: web.URL, Transport: transport, Header: http.Header{"X-All": {"1"}}}
	x := h.Do(http.MethodPost, http.Header{"X-One": {"2"}}, []byte(`{"jsonrpc":"2.0","id":1,"method":"a"}`))
	select {
	case <-x.Done():
	case <-time.After(time.Minute):
		require.FailNow(t, "the exchange does not end")
	}
	return x, log.Since(0)
}

func kinds(entries []wire.Entry) []wire.Kind {
	var all []wire.Kind
	for _, e := range entries {
		all = append(all, e.Kind)
	}
	return all
}

func TestEventStreamIsTakenApart(t *testing.T) {
	x, entries := exchanged(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "1", r.Header.Get("X-All"))
		assert.Equal(t, "2", r.Header.Get("X-One"))
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, "id: e1\ndata:\n\n: keep-alive\n\r\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":1,\"result\":{}}\n\ndata: garbage\n\ndata: {\"cut")
	})
	assert.Equal(t, []wire.Kind{wire.Sent, wire.Opened, wire.Comment, wire.Received, wire.Garbage, wire.Closed}, kinds(entries))
	assert.Equal(t, "e2", entries[3].EventID)
	assert.True(t, entries[3].Message.IsAnswerTo("1"))
	assert.Equal(t, "garbage", entries[4].Text)
	assert.Equal(t, "e2", x.EventID())
	assert.NoError(t, x.Err())
	assert.Equal(t, http.StatusOK, x.Status())
}

func TestBodiesAreMessagesOrGarbage(t *testing.T) {
	_, entries := exchanged(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
	assert.Equal(t, wire.Received, entries[2].Kind)
	_, entries = exchanged(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) })
	assert.Equal(t, wire.Garbage, entries[2].Kind)
	_, entries = exchanged(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	assert.Equal(t, wire.Closed, entries[2].Kind)
}

// Whoever learns of the end by the log finds it on the exchange.
func TestTheEndOfAnExchangeIsOneInstant(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer web.Close()
	transport := wire.NewTransport()
	defer transport.CloseIdleConnections()
	log := wire.NewLog()
	h := &wire.HTTP{Log: log, URL: web.URL, Transport: transport}
	for range 200 {
		from := log.Len()
		x := h.Do(http.MethodPost, nil, []byte(`{"jsonrpc":"2.0","method":"a"}`))
		_, told := log.Wait(t.Context(), from, func(e wire.Entry) bool { return e.Kind == wire.Closed })
		require.True(t, told)
		select {
		case <-x.Done():
		default:
			require.Fail(t, "the log says that the response has ended, and the exchange does not")
		}
	}
}

func TestDropClosesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	begun := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(gone)
	}))
	defer web.Close()
	transport := wire.NewTransport()
	defer transport.CloseIdleConnections()
	h := &wire.HTTP{Log: wire.NewLog(), URL: web.URL, Transport: transport}
	x := h.Do(http.MethodGet, nil, nil)
	<-begun
	x.Drop()
	<-x.Done()
	<-gone
	assert.Error(t, x.Err())
	assert.Zero(t, x.Status())
}
