package streamable_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dialRaw opens a connection, on which it writes the head of a request as it should be.
func dialRaw(e *endpoint, c call, length int) net.Conn {
	conn, err := e.l.Dial(e.t.Context(), "", "")
	require.NoError(e.t, err)
	head := "POST /mcp HTTP/1.1\r\nHost: mem.example\r\n"
	for name := range c.header {
		head += name + ": " + c.header.Get(name) + "\r\n"
	}
	_, err = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n", head, length)
	require.NoError(e.t, err)
	return conn
}

// Who sends a byte now and then is answered and disconnected when the time is up, nothing of it was
// begun, and the next request on another connection is served.
func TestSlowBodiesAreGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		c := modernTool(1, "wait", M{"tag": "a"})
		begun := time.Now()
		conn := dialRaw(e, c, len(c.body))
		defer conn.Close()
		go func() {
			for i := range len(c.body) {
				if _, err := io.WriteString(conn, c.body[i:i+1]); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
		assert.True(t, response.Close, "the connection must not be used again")
		assert.Equal(t, 30*time.Second, time.Since(begun))
		assert.Empty(t, f.started)
		assert.Contains(t, e.do(modernTool(1, "echo", M{"text": "still here"})).body, "still here")
	})
}

// A connection on which nothing comes after the head is given up as well; one whose request is
// served for longer than that is not.
func TestTheBoundIsOfTheBodyOnly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{BodyTimeout: 2 * time.Second})
		silent := dialRaw(e, modernTool(1, "echo", M{"text": "x"}), 100)
		defer silent.Close()
		begun := time.Now()
		_, err := http.ReadResponse(bufio.NewReader(silent), nil)
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, time.Since(begun))

		c := modernTool(1, "wait", M{"tag": "a"})
		conn := dialRaw(e, c, len(c.body))
		_, err = io.WriteString(conn, c.body)
		require.NoError(t, err)
		go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, f.s.Stats().InFlight, "it waits for its handler, not for its body")
		require.NoError(t, conn.Close())
		synctest.Wait()
		assert.Zero(t, f.s.Stats().InFlight)
	})
}

// Any number of cancels of nothing costs a session nothing, and hits nobody.
func TestUnknownCancelsAreForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ss := f.s.Open(t.Context(), server.SessionOptions{ID: "x", Unordered: true, Version: server.Version20251125})
		defer ss.Close(0, "")
		r := &nowhere{}
		before := liveHeap()
		for i := range flood {
			msg := append(make([]byte, 0, 200), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"id-`...)
			msg = strconv.AppendInt(msg, int64(i), 10)
			ss.Receive(append(msg, `","reason":"rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"}}`...), r, nil, nil)
		}
		assert.Less(t, liveHeap(), before+(1<<20), "64 of them are remembered, for a while")
		assert.Zero(t, r.written)
	})
}

// Ids and names that break out of their header, and headers that contradict the body, are refused.
func TestSmuggledHeaders(t *testing.T) {
	f := newFixture(t, nil)
	h := streamable.NewHandler(f.s, nil)
	for name, c := range map[string]call{
		"another method":       modernTool(1, "echo", M{"text": "x"}).with("Mcp-Method", "tools/list"),
		"another tool":         modernTool(1, "echo", M{"text": "x"}).with("Mcp-Name", "wait"),
		"a line break":         modernTool(1, "echo", M{"text": "x"}).with("Mcp-Name", "echo\r\nMcp-Name: wait"),
		"broken base64":        modernTool(1, "echo", M{"text": "x"}).with("Mcp-Name", "=?base64?!?="),
		"another version":      modernTool(1, "echo", M{"text": "x"}).with("MCP-Protocol-Version", server.Version20251125),
		"an id of no session":  classicTool(1, "echo", M{"text": "x"}).with("Mcp-Session-Id", "../../x"),
		"an id with a newline": classicTool(1, "echo", M{"text": "x"}).with("Mcp-Session-Id", "x\r\ny: z"),
	} {
		g := newGuard()
		h.ServeHTTP(g, c.request(t.Context(), 1))
		assert.Containsf(t, []int{http.StatusBadRequest, http.StatusNotFound}, g.status, "%s: %s", name, g.body.String())
	}
	twice := modernTool(1, "echo", M{"text": "x"})
	twice.header = twice.header.Clone()
	twice.header["Mcp-Method"] = []string{"tools/call", "tools/list"}
	g := newGuard()
	h.ServeHTTP(g, twice.request(t.Context(), 1))
	assert.Equal(t, http.StatusBadRequest, g.status)
	assert.Empty(t, f.started)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// nowhere counts what is written to it.
type nowhere struct{ written int }

func (n *nowhere) Send([]byte) error  { n.written++; return nil }
func (n *nowhere) Answer([]byte, int) { n.written++ }
func (n *nowhere) Silence()           {}
