package bubble_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/require"
)

func TestListenerServesHTTPInABubble(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := bubble.Listen()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Hour) // no time of anybody's, unless a socket is waited for
			_, _ = io.WriteString(w, "hello")
		})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: l.Dial}}
		begin := time.Now()
		response, err := client.Get("http://memory.example/")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, "hello", string(body))
		require.Equal(t, time.Hour, time.Since(begin))
		client.CloseIdleConnections()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
}

func TestListenerThatIsClosed(t *testing.T) {
	l := bubble.Listen()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Dial(ctx, "", "")
	require.ErrorIs(t, err, context.Canceled, "nobody accepts")
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Dial(t.Context(), "", "")
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, "pipe", l.Addr().Network())
}
