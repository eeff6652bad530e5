package stdio_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCase02_CancelledCallsAreSilent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initialize()
		for i := range 100 {
			c.call(i, []string{"wait", "value", "panic"}[i%3], "")
			if i%2 == 0 {
				synctest.Wait() // the handler has begun; otherwise it may not have
			}
			c.cancel(i)
		}
		c.echo(1000)
		c.quiet()
		c.end()
		assert.Empty(t, c.rest())
		assert.Zero(t, c.running.Load())
	})
}

func TestCase12_CancelsAheadOfTheirCallAreIgnored(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initialize()
		for i := range 2000 {
			c.write(cancelLine(i) + "\n" + callLine(i, "echo", `"text":"hello"`) + "\n")
			require.Equal(t, "hello", c.answer(i).text())
		}
		c.end()
	})
}

func TestCase13_IDsCanBeUsedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initialize()
		c.call(1, "wait", "")
		c.cancel(1)
		c.echo(1)
		c.call(2, "ignore", "")
		synctest.Wait()
		c.cancel(2)
		c.echo(2) // although the first handler still runs
		c.release <- struct{}{}
		c.quiet()
		c.end()
	})
}

func TestCase14_DuplicatesLeaveTheFirstAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initialize()
		c.call(1, "wait", "")
		c.call(1, "echo", `"text":"x"`)
		m := c.answer(1)
		require.NotNil(t, m.Error, m.raw)
		assert.Equal(t, -32600, m.Error.Code)
		synctest.Wait()
		require.EqualValues(t, 1, c.running.Load())
		c.cancel(1)
		synctest.Wait()
		assert.Zero(t, c.running.Load())
		c.quiet()
		c.end()
	})
}

func TestCase36_ReaderThatStops(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const pending = 2000
		c, unread := serveUnread(t, newFixture(nil), &stdio.Options{MaxPending: pending, WriteTimeout: time.Hour})
		c.line(initializeLine, "2025-11-25")
		sent := 0
		for i := range stdio.MaxBlocked + pending {
			sent++
			c.call(i, "echo", `"text":"hello"`)
			if i%50 == 0 || i >= stdio.MaxBlocked {
				synctest.Wait()
			}
			if sent-int(c.begun.Load()) >= 3 && i >= stdio.MaxBlocked {
				break // the last ones were refused
			}
		}
		begun := int(c.begun.Load())
		assert.GreaterOrEqual(t, begun, stdio.MaxBlocked)
		assert.Less(t, begun, stdio.MaxBlocked+100, "what waits is bounded")

		assert.Empty(t, c.returned)
		go c.read(unread) // it reads again
		got := map[string]int{}
		refused := 0
		for range sent + 1 {
			m := c.next()
			if got[string(m.ID)]++; m.Error != nil {
				assert.Equal(t, -32603, m.Error.Code, m.raw)
				refused++
			}
		}
		assert.Len(t, got, sent+1, "each is answered once")
		assert.Equal(t, sent-begun, refused)
		c.quiet()
		c.echo(`"after"`)
		c.end()
	})
}

func TestCase36_CancelsReachHandlersOfAPeerThatStops(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		c, _ := serveUnread(t, f, &stdio.Options{MaxPending: 100, WriteTimeout: time.Minute})
		begun := time.Now()
		c.line(initializeLine, "2025-11-25")
		c.call(1, "wait", "")
		c.call(2, "chatter", `"n":1000`) // waits for room in the middle of it
		synctest.Wait()
		c.cancel(1)
		c.cancel(2)
		for range 2 {
			d := <-f.done
			assert.Equal(t, cancellation.Peer, d.Origin)
			assert.Zero(t, time.Since(begun))
		}
		assert.Zero(t, f.running.Load())
		assert.ErrorIs(t, c.result(), stdio.ErrStalled)
		assert.LessOrEqual(t, time.Since(begun), 90*time.Second)
	})
}

func TestCase36_ShutdownReturns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, _ := serveUnread(t, newFixture(nil), &stdio.Options{MaxPending: 100})
		c.line(initializeLine, "2025-11-25")
		for i := range 20 {
			c.call(i, "echo", `"text":"hello"`)
		}
		synctest.Wait()
		begun := time.Now()
		c.stop()
		assert.ErrorIs(t, c.result(), server.ErrHandlersLeft)
		assert.LessOrEqual(t, time.Since(begun), 4*time.Second)
		synctest.Wait()
		assert.Zero(t, c.running.Load())
	})
}

// serveUnread is serve for a client that does not read what unread has for it.
func serveUnread(t *testing.T, f *fixture, o *stdio.Options) (c *served, unread io.Reader) {
	t.Helper()
	r, w := io.Pipe()
	c = serveTo(t, f, o, w)
	t.Cleanup(func() { r.Close() })
	return c, r
}

func TestCase49_NoLineEndsTheSession(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, x := range []struct {
		name, line string
		code       int    // 0: no answer
		id         string // of the answer; "": null
	}{
		{"no JSON", `hello`, -32700, ""},
		{"half a message", `{"jsonrpc":"2.0","id":9,"method":"ping"`, -32700, ""},
		{"two messages", `{"jsonrpc":"2.0","id":9,"method":"ping"}{}`, -32700, ""},
		{"no UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\xff\"}", -32700, ""},
		{"NUL", "\x00", -32700, ""},
		{"a number", `42`, -32600, ""},
		{"wrong version tag", `{"jsonrpc":"1.0","id":9,"method":"ping"}`, -32600, "9"},
		{"no version tag", `{"id":9,"method":"ping"}`, -32600, "9"},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, ""},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, -32600, ""},
		{"batch", `[{"jsonrpc":"2.0","id":9,"method":"ping"}]`, -32600, ""},
		{"empty batch", `[]`, -32600, ""},
		{"too long", `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"a":"` + long + `"}}`, -32600, ""},
		{"unknown method", `{"jsonrpc":"2.0","id":9,"method":"nonsense"}`, -32601, "9"},
		{"notification with an id", `{"jsonrpc":"2.0","id":9,"method":"notifications/cancelled"}`, -32601, "9"},
		{"unknown notification", `{"jsonrpc":"2.0","method":"nonsense"}`, 0, ""},
		{"answer to nothing", `{"jsonrpc":"2.0","id":9,"result":{}}`, 0, ""},
		{"blank", ``, 0, ""},
		{"spaces", "  \t \r", 0, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				c := serve(t, newFixture(nil), &stdio.Options{MaxLine: 2000})
				c.initialize()
				c.write(x.line + "\n")
				switch {
				case x.code == 0:
					c.quiet()
				case x.id == "":
					c.fault(x.code)
				default:
					m := c.answer(x.id)
					require.NotNil(t, m.Error, m.raw)
					assert.Equal(t, x.code, m.Error.Code)
				}
				c.echo(1)
				c.end()
			})
		})
	}
}

func TestCase49_WhiteSpaceIsNoFault(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.write("\xef\xbb\xbf\r\n\n")
		c.initialize()
		for i, format := range []string{"%s \t\n", "%s\r\n", "  %s\n", "\n\n%s\n\r\n"} {
			c.write(fmt.Sprintf(format, callLine(i, "echo", `"text":"hello"`)))
			require.Equal(t, "hello", c.answer(i).text())
		}
		c.quiet()
		c.end()
	})
}

func TestCase49_BatchesWhereTheRevisionHasThem(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initializeVersion("2025-03-26")
		c.line(`[%s,{"jsonrpc":"2.0","method":"notifications/x"},7,%s]`, callLine(1, "echo", `"text":"a"`), callLine(2, "wait", ""))
		c.echo(3)
		c.cancel(2)
		m := c.next()
		assert.True(t, strings.HasPrefix(m.raw, "["), m.raw)
		assert.Contains(t, m.raw, `"id":1`)
		assert.Contains(t, m.raw, `-32600`)
		assert.NotContains(t, m.raw, `"id":2`)
		c.line(`[%s,%s]`, callLine(4, "wait", ""), callLine(5, "wait", ""))
		c.line(`[%s,%s]`, cancelLine(4), cancelLine(5))
		c.quiet()
		c.line(`[{"jsonrpc":"2.0","id":6,"method":"nonsense"}]`)
		assert.Contains(t, c.next().raw, `-32601`)
		c.echo(7)
		c.end()
	})
}

func TestCase57_PingAndCancelAmongManyWaitingCalls(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initialize()
		for i := range 300 {
			c.call(i, "wait", "")
		}
		synctest.Wait()
		require.EqualValues(t, 300, c.running.Load())
		begun := time.Now()
		c.line(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
		c.cancel(0)
		c.answer(`"ping"`)
		synctest.Wait()
		assert.EqualValues(t, 299, c.running.Load())
		assert.Zero(t, time.Since(begun))
		c.quiet()
		c.end()
		assert.Zero(t, c.running.Load())
	})
}

func TestCase58_CallAndCancelInOneWrite(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initialize()
		for i := range 200 {
			c.write(callLine(i, "wait", "") + "\n" + cancelLine(i) + "\n")
		}
		synctest.Wait()
		assert.Zero(t, c.running.Load())
		c.quiet()
		c.end()
	})
}

func TestProgressAfterACancelIsNotWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		c, unread := serveUnread(t, f, nil)
		c.line(initializeLine, "2025-11-25")
		c.call(1, "chatter", `"n":1000`)
		synctest.Wait() // a thousand lines are waiting
		c.cancel(1)
		synctest.Wait()
		assert.Zero(t, f.running.Load())
		go c.read(unread)
		c.answer(`"init"`)
		c.call(2, "echo", `"text":"hello"`)
		progress := 0
		m := c.next()
		for ; m.Method == "notifications/progress"; m = c.next() {
			progress++
		}
		assert.LessOrEqual(t, progress, 1, "one may have been on its way")
		assert.Equal(t, "hello", m.text())
		c.end()
	})
}

// What a request of a batch has put goes with it, and what the others have put stays.
func TestProgressOfACancelledBatchElementIsNotWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		c, unread := serveUnread(t, f, nil)
		c.line(initializeLine, "2025-03-26")
		c.line(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.line(`[%s,%s,%s]`, callLine(1, "chatter", `"n":1000`), callLine(2, "chatter", `"n":10`), callLine(3, "echo", `"text":"hello"`))
		synctest.Wait() // all lines are waiting
		c.cancel(1)
		synctest.Wait()
		go c.read(unread)
		c.answer(`"init"`)
		synctest.Wait()
		c.cancel(2)
		progress := map[string]int{}
		m := c.next()
		for ; m.Method == "notifications/progress"; m = c.next() {
			var params struct{ ProgressToken json.Number }
			require.NoError(t, json.Unmarshal(m.Params, &params))
			progress[params.ProgressToken.String()]++
		}
		assert.LessOrEqual(t, progress["1"], 1, "one may have been on its way")
		assert.Equal(t, 10, progress["2"])
		assert.Contains(t, m.raw, `"id":3`)
		assert.NotContains(t, m.raw, `"id":1`)
		c.quiet()
		c.end()
	})
}

// A request of a batch that waits for room is woken by its cancel.
func TestCancelReachesABatchElementOfAPeerThatStops(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		c, _ := serveUnread(t, f, &stdio.Options{MaxPending: 100, WriteTimeout: time.Minute})
		begun := time.Now()
		c.line(initializeLine, "2025-03-26")
		c.line(`[%s,%s]`, callLine(1, "chatter", `"n":1000`), callLine(2, "chatter", `"n":1000`))
		synctest.Wait()
		c.cancel(1)
		assert.Equal(t, "1", (<-f.done).ID)
		c.cancel(2)
		assert.Equal(t, "2", (<-f.done).ID)
		assert.Zero(t, time.Since(begun))
		assert.ErrorIs(t, c.result(), stdio.ErrStalled)
	})
}

// slowReader is a logger that holds up the reading goroutine, which logs what it ignores: until
// everybody else waits.
type slowReader struct{ slog.Handler }

func (slowReader) Enabled(context.Context, slog.Level) bool      { return true }
func (slowReader) Handle(_ context.Context, _ slog.Record) error { time.Sleep(time.Second); return nil }

// A handler may send more than there is room for while the rest of its batch is still being taken in.
func TestSenderOfABatchWaitsWhileTheRestIsTakenIn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(&server.Options{Logger: slog.New(slowReader{slog.DiscardHandler})})
		c, unread := serveUnread(t, f, &stdio.Options{MaxPending: 100})
		c.line(initializeLine, "2025-03-26")
		c.line(`[%s,%s,{"jsonrpc":"2.0","method":"notifications/cancelled"}]`, callLine(1, "chatter", `"n":1000`), callLine(2, "echo", `"text":"hello"`))
		synctest.Wait()
		go c.read(unread)
		c.answer(`"init"`)
		for i := range 1000 {
			require.Equal(t, "notifications/progress", c.next().Method, i)
		}
		c.cancel(1)
		m := c.next()
		assert.Contains(t, m.raw, `"id":2`)
		assert.NotContains(t, m.raw, `"id":1`)
		c.end()
	})
}

// An operator learns why a client's message went nowhere.
func TestALineThatIsTooLongIsLogged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer // written by the reading goroutine, read once that has answered
		c := serve(t, newFixture(nil), &stdio.Options{MaxLine: 500, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		c.initialize()
		c.write(strings.Repeat("secret", 100) + "\n")
		c.fault(-32600)
		c.quiet()
		assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		assert.Contains(t, log.String(), `"level":"WARN"`)
		assert.Contains(t, log.String(), `"max_bytes":500`)
		assert.NotContains(t, log.String(), "secret")
		c.end()
	})
}

func TestBothErasOnOneStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.line(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
		assert.Equal(t, "hello", c.answer(0).text())
		c.initialize()
		c.echo(1)
		c.end()
	})
}
