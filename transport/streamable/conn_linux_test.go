package streamable_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/require"
)

func TestConnContextBoundsWhatIsNotAcknowledged(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){"plain": (*httptest.Server).Start, "tls": (*httptest.Server).StartTLS} {
		timeouts := make(chan int, 1)
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
		srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			ctx = streamable.ConnContext(ctx, c)
			if t, ok := c.(interface{ NetConn() net.Conn }); ok {
				c = t.NetConn()
			}
			raw, err := c.(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			require.NoError(t, raw.Control(func(fd uintptr) {
				ms, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, 0x12)
				if err != nil {
					ms = -1
				}
				timeouts <- ms
			}))
			return ctx
		}
		start(srv)
		resp, err := srv.Client().Get(srv.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 30_000, <-timeouts, name)
		srv.Close()
	}
}
