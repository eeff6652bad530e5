package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// connectTest connects the official client to a server, directly.
func connectTest(t *testing.T, endpoint, version string) *link {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	return &link{session: session}
}

// One server serves both eras, and ends when it is told to: what runs then is
// stopped and answered, and its batch is not half done.
func TestServeHTTP(t *testing.T) {
	onEachPlace(t, func(t *testing.T, where string) {
		db := openTest(t, where)
		fillTest(t, db, 100)
		p, endpoint, err := startServer(t.Context(), where)
		require.NoError(t, err)
		require.Equal(t, "/mcp", endpoint.Path)
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
			l := connectTest(t, endpoint.String(), version)
			require.Equal(t, version, l.session.InitializeResult().ProtocolVersion)
			result, err := l.session.CallTool(t.Context(), toolCall(statusTool, map[string]any{"operation_id": "op"}))
			require.NoError(t, err)
			require.Contains(t, result.Content[0].(*mcp.TextContent).Text, `"state":"unknown"`)
			require.NoError(t, l.close())
		}

		l := connectTest(t, endpoint.String(), "")
		failed := make(chan error, 1)
		go func() {
			var status Status
			failed <- l.call(t.Context(), toolCall(closeTool, map[string]any{"operation_id": "op", "batch": 100, "delay": "1m"}), &status)
		}()
		awaitState(t, db, "op", stateRunning)
		require.NoError(t, p.stop(), p.log.String())
		require.ErrorContains(t, <-failed, "the server is shutting down")
		require.NoError(t, l.close())
		require.Empty(t, p.log.String())
		status, err := db.status(t.Context(), "op")
		require.NoError(t, err)
		require.Equal(t, &Status{OperationID: "op", State: stateStopped, Runs: 1, Total: 100}, status)
		requireAudit(t, db, false)
	})
}

// awaitState waits until the operation is in a state.
func awaitState(t *testing.T, db *database, operation, state string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), surely)
	defer cancel()
	for {
		status, err := db.status(ctx, operation)
		require.NoError(t, err)
		if status.State == state {
			return
		}
		require.NoError(t, pause(ctx, leasePoll))
	}
}

func TestUnusableAddresses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	where := filepath.Join(t.TempDir(), "board.db")
	for _, c := range []struct{ address, want string }{
		{taken.Addr().String(), "address already in use"},
		{"127.0.0.1:99999", "invalid port"},
		{"127.0.0.1:no-such-service", "unknown port"},
		{"192.0.2.1:80", "cannot assign requested address"},
	} {
		status, stdout, stderr := inProcess("serve", "-http", c.address, "-db", where)
		require.Equal(t, exitUsage, status, c.address)
		require.Empty(t, stdout)
		requireOneLine(t, "cannot listen on \""+c.address+"\": ", stderr)
		require.Contains(t, stderr, c.want)
		require.NoFileExists(t, where, "a wrong address leaves no database behind")
	}
}

// A server that cannot start says why; the story passes that on.
func TestServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	_, _, err := startServer(t.Context(), filepath.Join(t.TempDir(), "missing", "board.db"))
	require.ErrorContains(t, err, "the server did not start: longtool: cannot use database")
}

// The line that says where a server listens is for the program, the rest for people.
func TestServerLog(t *testing.T) {
	t.Parallel()
	log := serverLog{listening: make(chan string, 1)}
	for _, part := range []string{"level=WARN msg=x\nlong", "tool: listening on http://127.0.0.1:1", "/mcp\nlevel=WARN", " msg=y\n" + listening + "z\n"} {
		n, err := log.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, "http://127.0.0.1:1/mcp", <-log.listening)
	require.Equal(t, "level=WARN msg=x\nlevel=WARN msg=y\n"+listening+"z\n", log.String())
}
