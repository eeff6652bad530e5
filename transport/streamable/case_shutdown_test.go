package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCase40_ShutdownEndsEverything(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{DrainGrace: time.Second})
		e := serve(t, f.s, nil)
		in := e.initialize(server.Version20251125, nil)
		listen := e.open(modern(9, "subscriptions/listen", M{"notifications": M{"toolsListChanged": true}}))
		require.Equal(t, "notifications/subscriptions/acknowledged", listen.next().message(t).Method)
		listening := in.open(newCall(http.MethodGet, ""))
		one := e.open(modernTool(1, "wait", M{"tag": "a"}))
		two := in.open(classicTool(1, "wait", M{"tag": "b"}))

		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan error, 2)
		go func() { done <- e.h.Shutdown(ctx) }()
		synctest.Wait()
		listening.end()
		for name, c := range map[string]call{"stateless": modernTool(2, "echo", M{"text": "x"}), "session": classicTool(2, "echo", M{"text": "x"}), "initialize": classic(1, "initialize", M{}), "GET": newCall("GET", "")} {
			a := in.do(c)
			assert.Equalf(t, http.StatusServiceUnavailable, a.status, name)
			assert.Equalf(t, -32603, a.code(t), name)
			assert.JSONEqf(t, `{"origin":"shutdown"}`, string(a.message(t).Error.Data), name)
		}
		in.accept(cancelOf(77, "what is running may still be talked to"))

		go func() { done <- e.h.Shutdown(ctx) }()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.Equal(t, time.Second, time.Since(begin), "the grace, and no longer")
		require.Equal(t, cancellation.Shutdown, f.next("a").Origin)
		require.Equal(t, cancellation.Shutdown, f.next("b").Origin)
		for name, w := range map[string]*flow{"listen": listen, "stateless": one, "session": two} {
			rest := messages(t, w.end())
			require.Lenf(t, rest, 1, name)
			assert.NotNilf(t, rest[0].Result, name)
		}
		require.Zero(t, f.s.Stats().Sessions)
		require.NoError(t, e.h.Shutdown(ctx))
	})
}

func TestShutdownReportsWhoIsLeft(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{DrainGrace: -1})
		e := serve(t, f.s, nil)
		in := e.initialize(server.Version20251125, nil)
		one := e.open(modernTool(1, "ignore", M{"tag": "a"}))
		two := in.open(classicTool(1, "ignore", M{"tag": "b"}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := e.h.Shutdown(ctx)
		var left *server.DrainError
		require.True(t, errors.As(err, &left))
		require.Len(t, left.Left, 2)
		require.Contains(t, string(messages(t, two.end())[0].Result), `"isError":true`)
		require.Contains(t, one.next().data, `"isError":true`)
		close(f.release)
		one.end()
	})
}

func TestCloseEndsSessionsAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{Grace: time.Second})
		in := session(t, f, nil)
		listening := in.open(newCall(http.MethodGet, ""))
		w := in.open(classicTool(1, "wait", M{"tag": "a"}))
		require.NoError(t, in.h.Close())
		listening.end()
		require.Equal(t, cancellation.Shutdown, f.next("a").Origin)
		require.Len(t, messages(t, w.end()), 1)
		require.Equal(t, http.StatusServiceUnavailable, in.do(classic(2, "ping", nil)).status)
	})
}
