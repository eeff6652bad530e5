package streamable_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both forms of answer, as a client's Accept header asks for them.
var forms = map[string]string{"stream": "application/json, text/event-stream", "json": "application/json"}

// inBackground makes a request whose response may never come.
func (e *endpoint) inBackground(c call) (cancel context.CancelFunc, done chan error) {
	ctx, cancel := context.WithCancel(context.Background())
	done = make(chan error, 1)
	go func() {
		resp, err := e.send(c.within(ctx))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		done <- err
	}()
	return cancel, done
}

func TestCase01_CancelledCallsAreSilentInTheStatelessEra(t *testing.T) {
	for _, tool := range []string{"wait", "value", "panic", "fail"} {
		bubble.Test(t, func(t *testing.T) {
			f := newFixture(t, nil)
			e := serve(t, f.s, nil)
			w := e.open(modernTool(1, tool, M{"tag": "a"}))
			f.begun("a")
			w.drop()
			require.Equal(t, cancellation.Disconnect, f.next("a").Origin, tool)
			d := <-f.done
			require.True(t, d.Cancelled)
			require.False(t, d.Answered)
			require.Empty(t, w.end())
			require.Equal(t, 200, e.do(modernTool(2, "echo", M{"text": "x"})).status)
		})
	}
}

func TestCase16_ClientsOfTheStatelessEraDoNotShareIDs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		one := e.open(modernTool(1, "wait", M{"tag": "a"}))
		two := e.open(modernTool(1, "wait", M{"tag": "b"}))
		require.Equal(t, http.StatusAccepted, e.do(modern(nil, "notifications/cancelled", M{"requestId": 1})).status)
		synctest.Wait()
		f.untouched("a")
		f.untouched("b")
		one.drop()
		require.Equal(t, cancellation.Disconnect, f.next("a").Origin)
		f.untouched("b")
		two.drop()
		f.next("b")
	})
}

func TestCase17_AQueuedCallThatIsDroppedNeverStarts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{MaxConcurrent: 1})
		e := serve(t, f.s, nil)
		first := e.open(modernTool(1, "wait", M{"tag": "a"}))
		f.begun("a")
		second := e.open(modernTool(2, "wait", M{"tag": "b"}))
		second.drop()
		d := <-f.done
		require.Equal(t, "2", d.ID)
		require.True(t, d.Started.IsZero())
		first.drop()
		f.next("a")
	})
}

func TestCase29_ADroppedConnectionCancelsAtOnce(t *testing.T) {
	for name, accept := range forms {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				e := serve(t, f.s, nil)
				cancel, done := e.inBackground(modernTool(1, "wait", M{"tag": "a"}).with("Accept", accept))
				f.begun("a")
				time.Sleep(100 * time.Millisecond)
				begin := time.Now()
				cancel()
				got := f.next("a")
				require.Less(t, time.Since(begin), 50*time.Millisecond)
				require.Equal(t, cancellation.Disconnect, got.Origin)
				require.Error(t, <-done)
			})
		})
	}
}

func TestCase29_ADropRightAtTheStartCancelsToo(t *testing.T) {
	for name, accept := range forms {
		for _, after := range []time.Duration{0, time.Millisecond, 19 * time.Millisecond, 20 * time.Millisecond, 499 * time.Millisecond, 500 * time.Millisecond} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					f := newFixture(t, nil)
					e := serve(t, f.s, nil)
					cancel, done := e.inBackground(modernTool(1, "wait", M{"tag": "a"}).with("Accept", accept))
					f.begun("a")
					time.Sleep(after)
					begin := time.Now()
					cancel()
					require.Equal(t, cancellation.Disconnect, f.next("a").Origin)
					require.Less(t, time.Since(begin), 50*time.Millisecond)
					<-done
				})
			})
		}
	}
}

func TestCase35_HalfABodyStartsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var logs strings.Builder
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelInfo}))})
		in := e.initialize(server.Version20251125, nil)
		for _, c := range []call{modernTool(1, "wait", M{"tag": "a"}), classicTool(1, "wait", M{"tag": "a"}).with("Mcp-Session-Id", in.session)} {
			for range 20 {
				conn, err := e.l.Dial(t.Context(), "", "")
				require.NoError(t, err)
				head := "POST /mcp HTTP/1.1\r\nHost: mem.example\r\n"
				for name := range c.header {
					head += name + ": " + c.header.Get(name) + "\r\n"
				}
				_, err = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, len(c.body), c.body[:len(c.body)/2])
				require.NoError(t, err)
				require.NoError(t, conn.Close())
			}
		}
		synctest.Wait()
		require.Empty(t, f.started)
		require.Empty(t, logs.String())
		require.Zero(t, f.s.Stats().InFlight)
	})
}

func TestCase43_ALimitIsAnswered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{Timeout: 200 * time.Millisecond, Grace: time.Second})
		e := serve(t, f.s, nil)
		in := e.initialize(server.Version20251125, nil)
		for _, tool := range []string{"wait", "ignore"} { // the runtime answers for one that does not look
			for name, a := range map[string]answer{
				"stateless": e.do(modernTool(1, tool, M{"tag": "a"})),
				"json":      e.do(modernTool(1, tool, M{"tag": "a"}).with("Accept", "application/json")),
				"handshake": in.do(classicTool(1, tool, M{"tag": "a"})),
			} {
				assert.Equalf(t, 200, a.status, "%s %s", tool, name)
				m := a.message(t)
				assert.Containsf(t, string(m.Result), `"isError":true`, "%s %s", tool, name)
				assert.Containsf(t, string(m.Result), "limit of 200ms", "%s %s", tool, name)
				assert.Equal(t, cancellation.Timeout, f.next("a").Origin)
			}
		}
		close(f.release)
	})
}

func TestCase44_AForeignCancellationErrorIsAnswered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "foreign"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
			return "", &cancellation.Error{Origin: cancellation.Peer, Reason: "not mine"}
		})
		e := serve(t, f.s, nil)
		a := e.do(modernTool(1, "foreign", M{}))
		require.Equal(t, 200, a.status)
		require.Contains(t, a.body, `"isError":true`)
	})
}

func TestCase46_APanicIsContained(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "burst"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
			panic("secret")
		})
		e := serve(t, f.s, nil)
		in := e.initialize(server.Version20251125, nil)
		for name, a := range map[string]answer{
			"stateless": e.do(modernTool(1, "burst", M{})),
			"handshake": in.do(classicTool(1, "burst", M{})),
		} {
			assert.Equalf(t, 200, a.status, name)
			assert.Equalf(t, -32603, a.code(t), name)
			assert.NotContainsf(t, a.body, "secret", name)
		}
		require.Equal(t, 200, e.do(modernTool(2, "echo", M{"text": "x"})).status)
	})
}

func TestCase50_KeysMatchInTheirCase(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		meta := fmt.Sprintf(`"_meta":{%q:%q,%q:{}}`, mcp.MetaKeyProtocolVersion, server.Version20260728, mcp.MetaKeyClientCapabilities)
		for body, status := range map[string]int{
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"wait","arguments":{"text":"x"},` + meta + `}}`:                       200, // Name is nobody's
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo","arguments":{"text":"x"},` + meta + `}}`:                                     400,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","name":"echo","arguments":{"text":"x"},` + meta + `}}`:                       400,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping","params":{"name":"echo","arguments":{"text":"x"},` + meta + `}}`:                     200,
			`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},` + meta + `}}`:                     400,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"echo","arguments":{"text":"x"},` + meta + `}}`:                                200,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"wait","name":"echo","arguments":{"text":"x"},` + meta + `}}`:                  400,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_META":{},` + meta + `}}`:                          200,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{},` + strings.ToUpper(meta[:7]) + `":{}}}`: 400,
		} {
			c := modernTool(1, "echo", nil)
			c.body = body
			a := e.do(c)
			assert.Equalf(t, status, a.status, "%s: %s", body, a.body)
		}
	})
}

func TestCase51_NamesInBase64AreDecoded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, newFixture(t, nil).s, nil)
		echo := modernTool(1, "echo", M{"text": "x"})
		for value, status := range map[string]int{
			"=?base64?ZWNobw==?=":   200,
			" =?base64?ZWNobw==?= ": 200,
			"=?base64?d2FpdA==?=":   400, // wait
			"=?base64?ZWNobw?=":     400, // no padding
			"=?base64?ZWNobx==?=":   400, // trailing bits
			"=?base64?!?=":          400,
			"=?base64?/w==?=":       400, // no UTF-8
			"=?BASE64?ZWNobw==?=":   400, // literal, and not the name
			"=?base64?=":            400, // literal, and not the name
			"ech\xf6":               400,
		} {
			a := e.do(echo.with("Mcp-Name", value))
			assert.Equalf(t, status, a.status, "%q: %s", value, a.body)
			if status == 400 {
				assert.Equalf(t, -32020, a.code(t), "%q", value)
			}
		}
	})
}

func TestCase54_OnlyMissingCapabilitiesAreListed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			_, err := req.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
			return "", err
		})
		e := serve(t, f.s, nil)
		a := e.do(modern(1, "tools/call", M{"name": "ask", "arguments": M{}, "_meta": M{mcp.MetaKeyClientCapabilities: M{"elicitation": M{}}}}))
		require.Equal(t, 400, a.status, a.body)
		require.Equal(t, -32021, a.code(t))
		require.JSONEq(t, `{"requiredCapabilities":{"sampling":{}}}`, string(a.message(t).Error.Data))
	})
}
