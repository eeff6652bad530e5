package stdio_test

import (
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/require"
)

// Handlers that wait for room to write do not put off the end of the service. (No
// bubble: what waits for a lock stops its clock.)
func TestCase36_TheServiceEndsThoughAHandlerWaitsForRoom(t *testing.T) {
	f := newFixture(nil)
	c, _ := serveUnread(t, f, &stdio.Options{MaxPending: 1000, WriteTimeout: -1, Grace: -1, Deadline: time.Millisecond})
	c.line(initializeLine, "2025-11-25")
	c.line(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"chatter","arguments":{"n":1000},"_meta":{"progressToken":1}}}`)
	require.Eventually(t, func() bool { return f.begun.Load() == 1 }, patience, time.Millisecond)
	c.stop()
	require.ErrorIs(t, c.result(), server.ErrHandlersLeft)
}
