package streamable_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lifetimes verifies tokens that name their user and have an hour to live. by is how far the clock of the system has
// been set ahead since they were given out: to a server that compares an instant with its clock, a clock that is an
// hour ahead and an instant that is an hour earlier are the same.
type lifetimes struct {
	until time.Time
	by    atomic.Int64 // nanoseconds
}

func (l *lifetimes) verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: l.until.Add(-time.Duration(l.by.Load()))}, nil
}

func (l *lifetimes) jump(by time.Duration) { l.by.Add(int64(by)) }

// expiring is an endpoint whose client has a token for an hour.
func expiring(t *testing.T) (*fixture, *lifetimes, *endpoint) {
	f := newFixture(t, nil)
	l := &lifetimes{until: time.Now().Add(time.Hour)}
	e := serve(t, f.s, &streamable.Options{Auth: &streamable.Auth{Verifier: l.verify}})
	e.bearer = "ann"
	return f, l, e
}

// A token is looked at when a request comes in. What has begun by then goes on: calls are answered and streams stay open
// and are told of changes, however long the token has been over. The next request is refused, whatever it is, a cancel and the
// end of the session included; with a new token of the same principal all is as it was.
func TestTokensExpire(t *testing.T) {
	for name, expire := range map[string]func(*lifetimes){
		"by themselves":         func(*lifetimes) { time.Sleep(2 * time.Hour) },
		"by a clock that jumps": func(l *lifetimes) { l.jump(2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f, l, e := expiring(t)
				in := e.initialize(server.Version20251125, nil)
				listening := in.open(call{method: http.MethodGet, header: http.Header{"Accept": {"text/event-stream"}}})
				listening.next() // the event to resume from
				session := in.open(classicTool(1, "wait", M{"tag": "a"}))
				f.begun("a")
				stateless := e.open(modernTool(1, "wait", M{"tag": "b"}))
				f.begun("b")

				expire(l)
				synctest.Wait()
				f.untouched("a")
				f.untouched("b")
				f.waiting("another", func(error) (string, error) { return "", nil })
				for {
					if ev := listening.next(); !ev.comment {
						require.Contains(t, ev.data, "tools/list_changed", "the stream is open")
						break
					}
				}
				for what, a := range map[string]answer{
					"a call of the session":      in.do(classicTool(2, "echo", M{"text": "x"})),
					"a call without a session":   e.do(modernTool(2, "echo", M{"text": "x"})),
					"a cancel":                   in.do(cancelOf(1, "r")),
					"a stream":                   in.do(call{method: http.MethodGet, header: http.Header{"Accept": {"text/event-stream"}}}),
					"the end of the session":     in.do(call{method: http.MethodDelete, header: http.Header{}}),
					"the opening of another one": e.do(classic(0, "initialize", M{"protocolVersion": server.Version20251125})),
				} {
					assert.Equal(t, http.StatusUnauthorized, a.status, what)
					assert.Contains(t, a.header.Get("WWW-Authenticate"), `error="invalid_token"`, what)
				}
				f.untouched("a")

				l.until = l.until.Add(24 * time.Hour) // the client has got another token
				in.accept(cancelOf(1, "with a new token"))
				assert.Equal(t, "with a new token", f.next("a").Reason)
				session.end()
				assert.Contains(t, in.do(classicTool(3, "echo", M{"text": "as it was"})).body, "as it was")
				require.True(t, f.s.Cancel("", "1", "enough"))
				assert.Equal(t, "enough", f.next("b").Reason)
				events := stateless.end()
				assert.Contains(t, events[len(events)-1].data, "enough", "the call that had begun is answered")
				listening.drop()
			})
		})
	}
}

// A clock that is set back makes a token last longer by as much, and no further.
func TestTokensExpireLaterAfterTheClockWasSetBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, l, e := expiring(t)
		l.jump(-30 * time.Minute)
		time.Sleep(90 * time.Minute)
		assert.Equal(t, http.StatusOK, e.do(modernTool(1, "echo", M{"text": "x"})).status)
		time.Sleep(time.Nanosecond)
		assert.Equal(t, http.StatusUnauthorized, e.do(modernTool(2, "echo", M{"text": "x"})).status)
	})
}
