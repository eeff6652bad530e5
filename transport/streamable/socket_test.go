package streamable_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// onSockets starts an endpoint on a loopback port, over HTTP/1.1 or, with TLS, HTTP/2.
func onSockets(t testing.TB, f *fixture, o *streamable.Options, http2 bool) *endpoint {
	t.Helper()
	h := streamable.NewHandler(f.s, o)
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ConnContext = streamable.ConnContext
	srv.EnableHTTP2 = http2
	if http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(func() {
		_ = h.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	e := &endpoint{t: t, s: f.s, h: h, client: srv.Client(), url: srv.URL}
	t.Cleanup(e.client.CloseIdleConnections)
	return e
}

var protocols = map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true}

func TestBothErasOverSockets(t *testing.T) {
	for proto, http2 := range protocols {
		t.Run(proto, func(t *testing.T) {
			f := newFixture(t, nil)
			e := onSockets(t, f, nil, http2)
			resp, err := e.send(modernTool(1, "echo", M{"text": "x"}))
			require.NoError(t, err)
			require.Equal(t, proto, resp.Proto)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())

			in := e.initialize(server.Version20251125, nil)
			for i := range 20 {
				require.Contains(t, e.do(modernTool(i, "echo", M{"text": "modern"})).body, "modern")
				require.Contains(t, in.do(classicTool(i, "echo", M{"text": "classic"})).body, "classic")
			}
			events := in.do(classic(99, "tools/call", M{"name": "echo", "arguments": M{"text": "x", "progress": 3}, "_meta": progress(1)})).events(t)
			require.Len(t, events, 5)

			for _, version := range []string{server.Version20260728, server.Version20251125} {
				cs := e.connect(nil, version)
				_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: M{"text": "x"}})
				require.NoError(t, err)
			}
		})
	}
}

func TestCase29_ADropIsNoticedOnEverySocket(t *testing.T) {
	for proto, http2 := range protocols {
		for name, accept := range forms {
			t.Run(proto+" "+name, func(t *testing.T) {
				f := newFixture(t, nil)
				e := onSockets(t, f, nil, http2)
				cancel, done := e.inBackground(modernTool(1, "wait", M{"tag": "a"}).with("Accept", accept))
				f.begun("a")
				begin := time.Now()
				cancel()
				require.Equal(t, cancellation.Disconnect, f.next("a").Origin)
				require.Less(t, time.Since(begin), time.Minute, "before anything is written to it; 50 ms where nothing else runs")
				<-done
			})
		}
	}
}

// An answer that the runtime gives for a handler that does not return is complete,
// and the connection serves what comes next.
func TestCase43_ALimitIsAnsweredWhileTheHandlerGoesOn(t *testing.T) {
	for proto, http2 := range protocols {
		t.Run(proto, func(t *testing.T) {
			f := newFixture(t, &server.Options{Timeout: 20 * time.Millisecond, Grace: 20 * time.Millisecond})
			e := onSockets(t, f, nil, http2)
			for _, accept := range forms {
				a := e.do(modernTool(1, "ignore", M{"tag": "a"}).with("Accept", accept))
				require.Contains(t, a.body, `"isError":true`)
				require.Equal(t, 200, e.do(modernTool(2, "echo", M{"text": "x"})).status)
			}
			close(f.release)
		})
	}
}

// The same where no limit was known when the handler began: an operator cancels.
func TestAnOperatorsCancelIsAnsweredWhileTheHandlerGoesOn(t *testing.T) {
	for proto, http2 := range protocols {
		t.Run(proto, func(t *testing.T) {
			f := newFixture(t, &server.Options{Grace: 20 * time.Millisecond})
			e := onSockets(t, f, nil, http2)
			done := make(chan answer, 1)
			go func() { done <- e.do(modernTool(1, "ignore", M{"tag": "a"}).with("Accept", "application/json")) }()
			f.begun("a")
			require.True(t, f.s.Cancel("", "1", "enough"))
			require.Contains(t, (<-done).body, "enough")
			require.Equal(t, 200, e.do(modernTool(2, "echo", M{"text": "x"})).status)
			close(f.release)
		})
	}
}

// A client that reads nothing is given up, and its call cancelled. Over HTTP/2 that ends its own stream, and
// the connection serves what comes next.
func TestCase36_AStalledReaderIsGivenUpOnEverySocket(t *testing.T) {
	for proto, http2 := range protocols {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, &server.Options{ProgressInterval: -1})
			gone := make(chan error, 1)
			server.MustAddTool(f.s, &mcp.Tool{Name: "talk"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
				text := strings.Repeat("x", 64<<10)
				for i := range 10_000 { // more than any buffer holds
					if err := req.Progress(ctx, float64(i+1), 0, text); err != nil {
						gone <- err
						return "", err
					}
				}
				gone <- nil
				return "", nil
			})
			e := onSockets(t, f, &streamable.Options{WriteTimeout: 2 * time.Second}, http2)
			resp, err := e.send(modern(1, "tools/call", M{"name": "talk", "arguments": M{}, "_meta": progress(1)}))
			require.NoError(t, err)
			require.ErrorIs(t, <-gone, cancellation.ErrCancelled)
			require.Equal(t, cancellation.Disconnect, (<-f.done).Origin)
			require.Equal(t, 200, e.do(modernTool(2, "echo", M{"text": "x"})).status)
			_, err = io.Copy(io.Discard, resp.Body)
			require.Error(t, err, "it breaks off")
			require.NoError(t, resp.Body.Close())
		})
	}
}

// A body that is refused takes its connection along, but over HTTP/2, where others share it.
func TestARefusedBodyOnEverySocket(t *testing.T) {
	for proto, http2 := range protocols {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			e := onSockets(t, f, &streamable.Options{MaxBody: 10_000, BodyTimeout: 2 * time.Second}, http2)
			reused := func() (reused bool) {
				c := modernTool(1, "echo", M{"text": "x"})
				c.ctx = httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
				require.Equal(t, 200, e.do(c).status)
				return reused
			}
			reused()
			require.Equal(t, http.StatusRequestEntityTooLarge, e.do(modernTool(1, "echo", M{"text": strings.Repeat("x", 10_000)})).status)
			require.Equal(t, http2, reused())

			body, stalled := io.Pipe() // and then nothing comes
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url, body)
			require.NoError(t, err)
			r.Header = modernTool(1, "echo", M{"text": "x"}).header
			resp, err := e.client.Do(r)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadRequest, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			require.NoError(t, stalled.Close())
			require.Equal(t, http2, reused())
		})
	}
}

// descriptors counts the process's open files.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// eventually waits for something that the system does in its own time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, time.Minute, 5*time.Millisecond, what)
}

func TestCase42_AThousandOpenStreamsLeaveNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("files are not counted on this system")
	}
	f := newFixture(t, nil)
	e := onSockets(t, f, &streamable.Options{StreamAfter: time.Millisecond}, false)
	e.client.Transport.(*http.Transport).MaxIdleConnsPerHost = -1
	in := e.initialize(server.Version20251125, nil)
	round := func(n int) {
		ctx, drop := context.WithCancel(t.Context())
		flows := make([]*http.Response, 0, 2*n)
		for i := range n {
			for _, c := range []call{modernTool(i, "wait", M{"tag": "a"}), classicTool(i, "wait", M{"tag": "b"}).with("Mcp-Session-Id", in.session)} {
				resp, err := e.send(c.within(ctx))
				require.NoError(t, err)
				flows = append(flows, resp)
			}
		}
		require.Equal(t, 2*n, f.s.Stats().InFlight)
		for i := range n {
			in.accept(cancelOf(i, "r"))
		}
		for i := 1; i < len(flows); i += 2 {
			body, err := io.ReadAll(flows[i].Body) // a cancelled one ends by itself
			require.NoError(t, err)
			require.NotContains(t, string(body), "jsonrpc")
		}
		drop()
		for _, resp := range flows {
			_ = resp.Body.Close()
		}
		for range n {
			f.next("a")
			f.next("b")
		}
		for range 2 * n {
			<-f.started
			<-f.done
		}
		eventually(t, "all have ended", func() bool { s := f.s.Stats(); return s.InFlight == 0 && s.Lingering == 0 })
	}
	round(10)
	var goroutines, files int
	settle := func() bool {
		goroutines = runtime.NumGoroutine()
		if runtime.GOOS == "linux" {
			files = descriptors(t)
		}
		return true
	}
	e.client.CloseIdleConnections()
	eventually(t, "connections have closed", func() bool { before := goroutines; return settle() && goroutines == before })
	wantGoroutines, wantFiles := goroutines, files
	round(500)
	e.client.CloseIdleConnections()
	eventually(t, "goroutines and files are what they were", func() bool {
		return settle() && goroutines <= wantGoroutines+2 && files <= wantFiles+2
	})
	require.Zero(t, f.s.Stats().InFlight)
}

func TestLargeAnswersOverSockets(t *testing.T) {
	for proto, http2 := range protocols {
		t.Run(proto, func(t *testing.T) {
			f := newFixture(t, nil)
			e := onSockets(t, f, &streamable.Options{MaxBody: 16 << 20}, http2)
			text := strings.Repeat("0123456789", 100_000)
			require.Contains(t, e.do(modernTool(1, "echo", M{"text": text})).body, text)
			require.Equal(t, 200, e.do(modernTool(2, "echo", M{"text": "after"})).status)
		})
	}
}
