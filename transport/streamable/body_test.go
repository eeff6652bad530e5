package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// headOf opens a connection and writes the head of a request on it, line by line.
func headOf(e *endpoint, lines ...string) net.Conn {
	conn, err := e.l.Dial(e.t.Context(), "", "")
	require.NoError(e.t, err)
	_, err = fmt.Fprintf(conn, "%s\r\n\r\n", strings.Join(append(lines, "Host: mem.example"), "\r\n"))
	require.NoError(e.t, err)
	return conn
}

// A request that is refused by its head alone is answered, and its connection given up, when its body does
// not come: net/http would wait for it, with the answer, for ever.
func TestABodyThatIsNotWantedIsNotWaitedFor(t *testing.T) {
	const length, chunked = "Content-Length: 1000", "Transfer-Encoding: chunked"
	for name, c := range map[string]struct {
		status int
		head   []string
	}{
		"no JSON":            {415, []string{"POST /mcp HTTP/1.1", "Content-Type: text/plain", length}},
		"nothing acceptable": {406, []string{"POST /mcp HTTP/1.1", "Content-Type: application/json", "Accept: text/html", chunked}},
		"another origin":     {403, []string{"POST /mcp HTTP/1.1", "Origin: https://evil.example", length}},
		"a preflight":        {204, []string{"OPTIONS /mcp HTTP/1.1", "Origin: http://localhost", "Access-Control-Request-Method: POST", length}},
		"no token":           {401, []string{"POST /mcp HTTP/1.1", "Content-Type: application/json", length}},
		"another method":     {405, []string{"PUT /mcp HTTP/1.1", "Authorization: Bearer t", chunked}},
		"GET, no session":    {405, []string{"GET /mcp HTTP/1.1", "Authorization: Bearer t", length}},
		"DELETE, no session": {405, []string{"DELETE /mcp HTTP/1.1", "Authorization: Bearer t", chunked}},
		"GET":                {400, []string{"GET /mcp HTTP/1.1", "Authorization: Bearer t", "Mcp-Session-Id: x", length}},
		"DELETE":             {400, []string{"DELETE /mcp HTTP/1.1", "Authorization: Bearer t", "Mcp-Session-Id: x", chunked}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				o := &streamable.Options{BodyTimeout: 20 * time.Second, CORS: &streamable.CORS{}}
				if name != "no JSON" && name != "nothing acceptable" {
					o.Auth = &streamable.Auth{AllowMissingExpiration: true, Verifier: func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
						return &auth.TokenInfo{UserID: "u"}, nil
					}}
				}
				e := serve(t, newFixture(t, nil).s, o)
				begun := time.Now()
				conn := headOf(e, c.head...)
				defer conn.Close()
				give := time.AfterFunc(time.Hour, func() { _ = conn.Close() })
				defer give.Stop()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err, "it is answered")
				assert.Equal(t, c.status, resp.StatusCode)
				assert.True(t, resp.Close, "the connection must not be used again")
				assert.Equal(t, 20*time.Second, time.Since(begun))
			})
		})
	}
}

// One that is refused and whose body has come keeps its connection.
func TestARefusedRequestKeepsItsConnection(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		conn := headOf(e, "POST /mcp HTTP/1.1", "Content-Type: text/plain", "Content-Length: 2")
		defer conn.Close()
		_, err := conn.Write([]byte("{}"))
		require.NoError(t, err)
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusUnsupportedMediaType, resp.StatusCode)
		_, err = r.Discard(int(resp.ContentLength))
		require.NoError(t, err)
		time.Sleep(time.Hour) // the bound was for the body
		c := modernTool(1, "echo", M{"text": "the same connection"})
		head := "POST /mcp HTTP/1.1\r\nHost: mem.example\r\n"
		for name := range c.header {
			head += name + ": " + c.header.Get(name) + "\r\n"
		}
		_, err = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, len(c.body), c.body)
		require.NoError(t, err)
		resp, err = http.ReadResponse(r, nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode)
	})
}

// A client that resumes a stream by a request whose body does not come holds up neither the handler that
// writes to that stream, nor the cancel of its call.
func TestAResumingClientsBodyHoldsNobodyUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		talk, said := make(chan struct{}), make(chan error, 1)
		server.MustAddTool(f.s, &mcp.Tool{Name: "talk"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			<-talk
			said <- req.Progress(ctx, 1, 0, "")
			<-ctx.Done()
			return "", ctx.Err()
		})
		e := serve(t, f.s, &streamable.Options{Response: streamable.Stream})
		in := e.initialize(server.Version20251125, nil)
		w := in.open(classic(1, "tools/call", M{"name": "talk", "arguments": M{}, "_meta": progress("p")}))
		seen := w.next()
		conn := headOf(e, "GET /mcp HTTP/1.1", "Accept: text/event-stream", "Mcp-Session-Id: "+in.session, "Last-Event-ID: "+seen.id, "Content-Length: 1000")
		defer conn.Close()
		synctest.Wait() // the server has read that, and waits for more
		close(talk)
		require.NoError(t, <-said, "the handler reports its progress")
		in.accept(cancelOf(1, "enough"))
		assert.Equal(t, "enough", (<-f.done).Reason, "and stops when it is asked to")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode)

		a := in.do(call{method: http.MethodDelete, body: `{"a":"body that means nothing"}`, header: http.Header{}})
		assert.Equal(t, http.StatusNoContent, a.status)
	})
}
