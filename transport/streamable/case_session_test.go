package streamable_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// session starts an endpoint with a session of the newest handshake-era revision.
func session(t testing.TB, f *fixture, o *streamable.Options) *endpoint {
	t.Helper()
	return serve(t, f.s, o).initialize(server.Version20251125, nil)
}

// accept sends what has no answer.
func (e *endpoint) accept(c call) {
	e.t.Helper()
	a := e.do(c)
	require.Equalf(e.t, http.StatusAccepted, a.status, "%s", a.body)
	require.Empty(e.t, a.body)
}

// messages are the JSON-RPC messages among events.
func messages(t testing.TB, events []event) (all []wire) {
	t.Helper()
	for _, ev := range events {
		if ev.data != "" {
			all = append(all, ev.message(t))
		}
	}
	return all
}

func TestCase16_SessionsDoNotReachEachOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		one, two := e.initialize(server.Version20251125, nil), e.initialize(server.Version20251125, nil)
		one.open(classicTool(1, "wait", M{"tag": "a"}))
		two.open(classicTool(1, "wait", M{"tag": "b"}))
		one.accept(cancelOf(1, "r"))
		f.next("a")
		synctest.Wait()
		f.untouched("b")
	})
}

func TestCase30_ADroppedStreamIsResumed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		prime := w.next()
		require.Empty(t, prime.data)
		require.NotEmpty(t, prime.id)
		w.drop()
		time.Sleep(time.Hour)
		f.untouched("a")
		again := in.open(newCall(http.MethodGet, "").with("Last-Event-ID", prime.id))
		close(f.release)
		rest := messages(t, again.end())
		require.Len(t, rest, 1)
		require.Equal(t, "1", string(rest[0].ID))
		require.Contains(t, string(rest[0].Result), "returned")
	})
}

func TestCase31_DeleteCancelsWithTheSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		listening := in.open(newCall(http.MethodGet, ""))
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		begin := time.Now()
		require.Equal(t, http.StatusNoContent, in.do(newCall(http.MethodDelete, "")).status)
		require.Zero(t, time.Since(begin), "answered while the handler runs")
		require.Equal(t, cancellation.SessionEnd, f.next("a").Origin)
		require.Empty(t, messages(t, w.end()))
		listening.end()
		require.Zero(t, time.Since(begin))
		// Case 33.
		require.Equal(t, http.StatusNotFound, in.do(classic(2, "ping", nil)).status)
		close(f.release)
		require.False(t, (<-f.done).Answered)
	})
}

func TestCase32_RunningRequestsKeepTheirSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{SessionIdle: time.Minute, MaxSessions: 1})
		in := e.initialize(server.Version20251125, nil)
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		w.next()
		w.drop() // the handler runs on without any HTTP request
		time.Sleep(time.Hour)
		f.untouched("a")
		require.Equal(t, 1, f.s.Stats().Sessions)
		a := e.do(classic(0, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}}))
		require.Equal(t, http.StatusServiceUnavailable, a.status, "the one session is in use")
		require.NotEmpty(t, a.header.Get("Retry-After"))
		f.untouched("a")
		close(f.release)
		<-f.done
		// Case 33.
		time.Sleep(2 * time.Minute)
		require.Zero(t, f.s.Stats().Sessions)
		require.Equal(t, http.StatusNotFound, in.do(classic(2, "ping", nil)).status)
	})
}

func TestCase34_AnotherPrincipalIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{Auth: &streamable.Auth{Verifier: byName, AllowMissingExpiration: true}})
		e.bearer = "alice"
		alice := e.initialize(server.Version20251125, nil)
		alice.open(classicTool(1, "wait", M{"tag": "a"}))
		mallory := *alice
		mallory.bearer = "mallory"
		for name, c := range map[string]call{
			"call":   classic(2, "ping", nil),
			"cancel": cancelOf(1, "r"),
			"GET":    newCall(http.MethodGet, ""),
			"resume": newCall(http.MethodGet, "").with("Last-Event-ID", "1-0"),
			"DELETE": newCall(http.MethodDelete, ""),
		} {
			a := mallory.do(c)
			assert.Equalf(t, http.StatusNotFound, a.status, name)
		}
		synctest.Wait()
		f.untouched("a")
		require.Equal(t, 200, alice.do(classic(2, "ping", nil)).status)
		alice.accept(cancelOf(1, "r"))
		f.next("a")
	})
}

// An answer counts only from the session that was asked.
func TestCase22_ASessionCannotAnswerForAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ended := asking(f, same)
		e := serve(t, f.s, nil)
		asked, other := e.initialize(server.Version20251125, M{"sampling": M{}}), e.initialize(server.Version20251125, M{"sampling": M{}})
		w := asked.open(classicTool(1, "ask", M{"tag": "a"}))
		q := question(w)
		other.accept(newCall("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, q.ID)))
		synctest.Wait()
		require.Empty(t, ended)
		asked.accept(cancelOf(1, "r"))
		<-ended
	})
}

func TestCase33_AnEndedSessionIsNotFoundAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{SessionIdle: time.Minute})
		for name, end := range map[string]func(*endpoint){
			"DELETE": func(in *endpoint) { in.do(newCall(http.MethodDelete, "")) },
			"expiry": func(*endpoint) { time.Sleep(time.Minute + time.Nanosecond) },
		} {
			in := e.initialize(server.Version20251125, nil)
			end(in)
			begin := time.Now()
			for _, c := range []call{classic(1, "ping", nil), cancelOf(1, "r"), newCall(http.MethodGet, ""), newCall(http.MethodDelete, ""), resumeAt("1-0")} {
				assert.Equalf(t, http.StatusNotFound, in.do(c).status, "%s %s", name, c.method)
			}
			assert.Zero(t, time.Since(begin))
		}
	})
}
