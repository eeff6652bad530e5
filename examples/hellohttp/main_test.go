package main

import (
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// One endpoint, a client of each era. Each stops its call at once, and the program, which lets
// calls that run come to their end, has nothing to wait for when it is interrupted.
func TestCountdownStopsInBothEras(t *testing.T) {
	// A busy machine may be as slow as a call that still runs, but not each time.
	for try := 1; endAfterStops(t) >= 4*time.Second; try++ {
		require.Less(t, try, 5, "a call still ran: it had five seconds")
	}
}

// endAfterStops runs the program for its clients, and returns how long it took to end.
func endAfterStops(t *testing.T) time.Duration {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := port.Addr().String()
	require.NoError(t, port.Close())
	command := host.Program(t, "-addr", address)
	command.Stderr = t.Output()
	require.NoError(t, command.Start())

	web := &http.Client{Transport: &http.Transport{}}
	defer web.CloseIdleConnections()
	require.Eventually(t, func() bool {
		response, err := web.Get("http://" + address + "/mcp")
		return err == nil && response.Body.Close() == nil
	}, host.Patience, 10*time.Millisecond)
	t.Run("clients", func(t *testing.T) {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(revision, func(t *testing.T) {
				t.Parallel()
				session := host.Connect(t, &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", HTTPClient: web},
					host.Options{Revision: revision})
				assert.Equal(t, "counted 1 seconds", session.Text("countdown", map[string]any{"from": 1}))
				call := session.Begin("countdown", map[string]any{"from": 60})
				assert.Zero(t, call.Report().Progress)
				assert.Equal(t, 1.0, call.Report().Progress)
				call.Stop()
			})
		}
	})
	start := time.Now()
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.NoError(t, command.Wait())
	return time.Since(start)
}
