package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestListenerGetsWhatBelongsToNoRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		w := in.open(newCall(http.MethodGet, ""))
		prime := w.next()
		require.NotEmpty(t, prime.id)
		require.Equal(t, http.StatusConflict, in.do(newCall(http.MethodGet, "")).status)

		change := func(name string) {
			server.MustAddTool(f.s, &mcp.Tool{Name: name}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil })
			time.Sleep(time.Minute)
		}
		change("one")
		ev := w.next()
		require.Equal(t, "notifications/tools/list_changed", ev.message(t).Method)
		w.drop()
		synctest.Wait()
		change("two")
		again := in.open(resumeAt(ev.id))
		require.Equal(t, "notifications/tools/list_changed", again.next().message(t).Method)
		// One that resumes replaces the connection that it had.
		third := in.open(resumeAt(prime.id))
		again.end()
		require.Equal(t, ev, third.next())
		third.next()
		third.drop()
		synctest.Wait()
		fourth := in.open(newCall(http.MethodGet, "")) // the place is free
		require.NotEmpty(t, fourth.next().id)
	})
}

func TestASlowListenerIsLetGo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		store := &recordingStore{EventStore: streamable.NewRingStore(0)}
		in := session(t, f, &streamable.Options{EventStore: store})
		resp, err := in.send(newCall(http.MethodGet, "")) // and then nothing is read
		require.NoError(t, err)
		begin := time.Now()
		for i := range 600 {
			server.MustAddTool(f.s, &mcp.Tool{Name: fmt.Sprint("tool", i)}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil })
			time.Sleep(20 * time.Millisecond)
		}
		require.LessOrEqual(t, time.Since(begin), 600*21*time.Millisecond, "nobody waited for it")
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
		w := in.open(resumeAt("0-0"))
		for range store.appends() - 1 {
			require.Equal(t, "notifications/tools/list_changed", w.next().message(t).Method)
		}
	})
}
