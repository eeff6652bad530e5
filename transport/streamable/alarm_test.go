package streamable_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Alarms that are set at any time, and of which some are taken back, ring in the instant
// in which they are due, once, and the others not at all.
func TestInvariant_A1_AnAlarmRingsOnceWhenItIsDue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const delay = 10 * time.Second
		as := streamable.NewAlarms(delay)
		random := rand.New(rand.NewPCG(1, 2))
		type one struct {
			alarm streamable.Alarm
			due   time.Time
			rung  atomic.Int32
			late  atomic.Bool
			back  bool
		}
		var all []*one
		for range 2000 {
			o := &one{due: time.Now().Add(delay)}
			as.Set(&o.alarm, func() {
				o.rung.Add(1)
				o.late.Store(!time.Now().Equal(o.due))
			})
			all = append(all, o)
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			if past := all[random.IntN(len(all))]; random.IntN(2) == 0 && !past.back && past.due.After(time.Now()) {
				require.False(t, past.alarm.Unset())
				past.back = true
			}
		}
		time.Sleep(delay)
		synctest.Wait()
		for i, o := range all {
			assert.Equal(t, !o.back, o.rung.Load() == 1, "%d rang %d times, taken back: %v", i, o.rung.Load(), o.back)
			assert.False(t, o.late.Load(), "%d", i)
			assert.Equal(t, !o.back, o.alarm.Unset(), "it says whether it has rung")
		}
		assert.Zero(t, as.Left())

		// It can be set again, also after all was quiet.
		time.Sleep(time.Hour)
		before := all[0].rung.Load()
		all[0].due = time.Now().Add(delay)
		as.Set(&all[0].alarm, func() { all[0].rung.Add(1) })
		time.Sleep(delay)
		synctest.Wait()
		assert.Equal(t, before+1, all[0].rung.Load())
	})
}

// Of alarms that are taken back when they are due, none rings afterwards: what they belong to
// can be used without a lock. The race detector watches.
func TestInvariant_A2_NothingRingsAfterUnset(t *testing.T) {
	as := streamable.NewAlarms(50 * time.Microsecond)
	var all sync.WaitGroup
	var rang atomic.Int64
	for range 4 {
		all.Go(func() {
			for i := range 500 {
				var a streamable.Alarm
				touched := 0
				as.Set(&a, func() { touched++ })
				if i%2 == 0 {
					time.Sleep(time.Duration(i) * 400 * time.Nanosecond) // around the time at which it is due
				}
				if a.Unset() {
					rang.Add(1)
					touched--
				}
				if touched != 0 {
					t.Errorf("it rang %d times more than unset has said", touched)
				}
			}
		})
	}
	all.Wait()
	assert.Positive(t, rang.Load(), "some were late")
	assert.Zero(t, as.Left())
}

// reports are the params of a call of reporter's tool.
var reports = M{"name": "report", "arguments": M{}, "_meta": progress("p")}

// reporter is a server with a tool that reports progress at once and after an hour.
func reporter(first chan<- struct{}) *server.Server {
	s := server.New(&mcp.Implementation{Name: "reporter", Version: "1"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "report"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
		err := req.Progress(ctx, 1, 2, "")
		if first != nil {
			first <- struct{}{}
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Hour):
		}
		return "reported", errors.Join(err, req.Progress(ctx, 2, 2, ""))
	})
	return s
}

// The http.Server's WriteTimeout is for responses that come at once: an event stream lasts as long as
// its call.
func TestStreamsOutlastTheServersWriteTimeout(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := serve(t, reporter(nil), nil)
		e.srv.WriteTimeout = 10 * time.Second
		assert.Contains(t, e.do(modern(1, "tools/call", reports)).body, "reported", "stateless")
		session := classic(1, "tools/call", reports).with("Mcp-Session-Id", welcomed(t, e.h))
		assert.Contains(t, e.do(session).body, "reported", "session")
	})
}

// Without a bound of the handler's own that of the http.Server holds, for event streams too.
func TestStreamsEndByTheServersWriteTimeoutWithoutAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := reporter(nil)
		e := serve(t, s, &streamable.Options{WriteTimeout: -1})
		e.srv.WriteTimeout = 10 * time.Second
		begun := time.Now()
		w := e.open(modern(1, "tools/call", reports))
		for ev := range w.events {
			assert.NotContains(t, ev.data, "reported")
		}
		assert.Error(t, w.err, "it breaks off")
		assert.Equal(t, 15*time.Second, time.Since(begun), "with the first comment that keeps it alive")
		synctest.Wait()
		assert.Equal(t, 0, s.Stats().InFlight, "the call was cancelled with its response")
	})
}

// A client that reads nothing holds up its own call for WriteTimeout, and then nobody.
func TestAWriteIsBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		first := make(chan struct{}, 1)
		s := reporter(first)
		e := serve(t, s, &streamable.Options{WriteTimeout: 7 * time.Second})
		c := modern(1, "tools/call", reports)
		conn := dialRaw(e, c, len(c.body))
		begun := time.Now()
		_, err := conn.Write([]byte(c.body))
		require.NoError(t, err)
		<-first
		assert.Equal(t, 7*time.Second, time.Since(begun))
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		assert.Error(t, err, "what was written of the response makes none")
		synctest.Wait()
		assert.Equal(t, 0, s.Stats().InFlight, "the call was cancelled with its client")
		_ = conn.Close()
	})
}

// Nor does one that asks for more than it reads hold up a short answer, or a shutdown, for longer: a pipe has no buffer, as a
// socket has none left whose peer sends request after request.
func TestAShortWriteIsBounded(t *testing.T) {
	for name, form := range map[string]struct {
		size   int
		accept string
		era    func(id any, name string, arguments M) call
	}{
		"JSON, stateless":   {10, "application/json", modernTool},
		"JSON, session":     {20_000, "application/json", classicTool},
		"stream, stateless": {10, "text/event-stream", modernTool},
		"stream, session":   {20_000, "text/event-stream", classicTool},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				e := serve(t, f.s, &streamable.Options{WriteTimeout: 7 * time.Second})
				c := form.era(1, "echo", M{"text": strings.Repeat("x", form.size)}).with("Accept", form.accept).with("Mcp-Session-Id", welcomed(t, e.h))
				conn := dialRaw(e, c, len(c.body))
				defer conn.Close()
				begun := time.Now()
				_, err := conn.Write([]byte(c.body))
				require.NoError(t, err)
				<-f.done
				assert.Equal(t, 7*time.Second, time.Since(begun), "the answer was given up")
				require.NoError(t, e.h.Shutdown(t.Context()))
				assert.Equal(t, 7*time.Second, time.Since(begun), "and nothing is left that a shutdown waits for")
				_, err = conn.Read(make([]byte, 1))
				assert.ErrorIs(t, err, io.EOF, "the connection is closed")
			})
		})
	}
}
