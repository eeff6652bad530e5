package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCase08_SilentCallsAreCommittedEarly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		for name, c := range map[string]call{
			"stateless": modernTool(1, "wait", M{"tag": "a"}),
			"handshake": classicTool(1, "wait", M{"tag": "a"}),
		} {
			at := e
			if name == "handshake" {
				at = e.initialize(server.Version20251125, nil)
			}
			begin := time.Now()
			w := at.open(c)
			assert.Equalf(t, 500*time.Millisecond, time.Since(begin), name)
			assert.Equalf(t, http.StatusOK, w.resp.StatusCode, name)
			assert.Equalf(t, "text/event-stream", w.resp.Header.Get("Content-Type"), name)
			assert.Equalf(t, "no", w.resp.Header.Get("X-Accel-Buffering"), name)
			assert.Equalf(t, "no-cache, no-transform", w.resp.Header.Get("Cache-Control"), name)
			f.begun("a")
			w.drop()
		}
		require.Equal(t, cancellation.Disconnect, f.next("a").Origin)
	})
}

func TestCase08_ClientsOfJSONAreNotCommittedEarly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		done := make(chan answer, 1)
		go func() {
			done <- e.do(modernTool(1, "ignore", M{"tag": "a"}).with("Accept", "application/json"))
		}()
		f.begun("a")
		time.Sleep(time.Hour)
		select {
		case <-done:
			require.FailNow(t, "answered early")
		default:
		}
		close(f.release)
		a := <-done
		require.Equal(t, "application/json", a.header.Get("Content-Type"))
		require.Contains(t, a.body, "returned")
	})
}

func TestCase09_QuietStreamsAreKeptAlive(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		in := e.initialize(server.Version20250618, nil)
		for name, w := range map[string]*flow{
			"stateless": e.open(modernTool(1, "wait", M{"tag": "a"})),
			"handshake": in.open(classicTool(1, "wait", M{"tag": "a"})),
			"listener":  in.open(newCall(http.MethodGet, "")),
		} {
			begin := time.Now()
			for range 6 {
				require.Truef(t, w.next().comment, name)
			}
			assert.LessOrEqualf(t, time.Since(begin), 6*15*time.Second, name)
			w.drop()
		}
	})
}

// Reports of progress count as signs of life: no comment comes between them.
func TestCase09_StreamsThatAreNotQuietNeedNoComments(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "slow"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			for i := range 9 {
				time.Sleep(10 * time.Second)
				if err := req.Progress(ctx, float64(i+1), 9, ""); err != nil {
					return "", err
				}
			}
			return "done", nil
		})
		e := serve(t, f.s, nil)
		for name, w := range map[string]*flow{
			"stateless": e.open(modern(1, "tools/call", M{"name": "slow", "arguments": M{}, "_meta": progress("p")})),
			"handshake": e.initialize(server.Version20250618, nil).open(classic(1, "tools/call", M{"name": "slow", "arguments": M{}, "_meta": progress("p")})),
		} {
			events := w.end()
			require.Lenf(t, events, 10, "%s: %v", name, events)
			for _, ev := range events[:9] {
				assert.Equalf(t, "notifications/progress", ev.message(t).Method, name)
			}
			assert.NotNilf(t, events[9].message(t).Result, name)
		}
	})
}

func TestCase03_NoProgressAfterTheDrop(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "loop"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			for i := range 1000 {
				time.Sleep(10 * time.Millisecond)
				_ = req.Progress(context.Background(), float64(i+1), 0, "") // goes on whatever happens
			}
			return "done", nil
		})
		e := serve(t, f.s, nil)
		w := e.open(modern(1, "tools/call", M{"name": "loop", "arguments": M{}, "_meta": progress(1)}))
		w.next()
		w.drop()
		d := <-f.done
		require.True(t, d.Cancelled)
		require.False(t, d.Answered)
		require.Greater(t, f.s.Stats().Dropped, int64(900))
	})
}

func TestCase04_ProgressPrecedesTheResult(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		in := e.initialize(server.Version20251125, nil)
		for i := range 50 {
			for name, a := range map[string]answer{
				"stateless": e.do(modern(i, "tools/call", M{"name": "echo", "arguments": M{"text": "x", "progress": 2}, "_meta": progress(i)})),
				"handshake": in.do(classic(i, "tools/call", M{"name": "echo", "arguments": M{"text": "x", "progress": 2}, "_meta": progress(i)})),
			} {
				var methods []string
				for _, ev := range a.events(t) {
					if ev.data != "" {
						methods = append(methods, ev.message(t).Method)
					}
				}
				require.Equalf(t, []string{"notifications/progress", "notifications/progress", ""}, methods, name)
			}
		}
	})
}

func TestCase05_ProgressTokensComeBackAsTheyWere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		for _, token := range []string{`"t"`, `7`, `"7"`, `9007199254740993`, `0`, `""`} {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x","progress":1},"_meta":{"progressToken":%s,%q:%q,%q:{}}}}`,
				token, mcp.MetaKeyProtocolVersion, server.Version20260728, mcp.MetaKeyClientCapabilities)
			c := modernTool(1, "echo", nil)
			c.body = body
			events := e.do(c).events(t)
			require.Len(t, events, 2)
			require.Contains(t, events[0].data, `"progressToken":`+token+`,`)
		}
		a := e.do(modernTool(1, "echo", M{"text": "x", "progress": 5}))
		require.Equal(t, "application/json", a.header.Get("Content-Type"), "without a token there is nothing to send")
	})
}
