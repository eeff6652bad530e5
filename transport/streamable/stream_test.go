package streamable_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestInvariant_H1_TheStreamOfACancelledRequestEndsAndStaysSilent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		store := streamable.NewRingStore(0)
		in := session(t, f, &streamable.Options{EventStore: store})
		w := in.open(classicTool(1, "ignore", M{"tag": "a"}))
		prime := w.next()
		begin := time.Now()
		in.accept(cancelOf(1, "r"))
		require.Empty(t, w.end())
		require.Zero(t, time.Since(begin))
		synctest.Wait()
		require.Zero(t, store.Size())
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(prime.id)).status)
		close(f.release)
		<-f.done
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(prime.id)).status)
		require.Zero(t, store.Size())
	})
}

// The cancel of a request whose client is away.
func TestInvariant_H1_HoldsWithoutAConnectionToo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		store := streamable.NewRingStore(0)
		in := session(t, f, &streamable.Options{EventStore: store})
		w := in.open(classicTool(1, "wait", M{"tag": "a"}))
		prime := w.next()
		w.drop()
		synctest.Wait()
		in.accept(cancelOf(1, "r"))
		f.next("a")
		synctest.Wait()
		require.Zero(t, store.Size())
		require.Equal(t, http.StatusNoContent, in.do(resumeAt(prime.id)).status)
	})
}

func TestInvariant_H2_ADroppedConnectionCancelsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := session(t, f, nil)
		for name, accept := range forms {
			cancel, done := in.inBackground(classicTool(name, "ignore", M{"tag": "a"}).with("Accept", accept))
			f.begun("a")
			cancel()
			<-done
		}
		time.Sleep(time.Hour)
		f.untouched("a")
		close(f.release)
		for range 2 {
			d := <-f.done
			require.False(t, d.Cancelled)
			require.NoError(t, d.Err)
		}
	})
}

func TestInvariant_H3_ANewerConnectionReplacesTheOlder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		in := session(t, f, nil)
		w := in.open(stepsCall(1))
		prime := w.next()
		again := in.open(resumeAt(prime.id)) // while the first is still there
		require.Empty(t, w.end())
		again.next() // an id of this connection's own
		next <- 1
		require.Contains(t, again.next().data, "progress")
		close(next)
		require.Len(t, messages(t, again.end()), 1)
	})
}

// A connection that nobody reads from does not keep its client from coming back.
func TestInvariant_H3_EvenIfTheOlderIsStuck(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{ProgressInterval: -1})
		next := steps(f)
		in := session(t, f, nil)
		resp, err := in.send(stepsCall(1))
		require.NoError(t, err) // and then nothing is read
		stuck := make(chan struct{})
		go func() {
			defer close(stuck)
			for i := range 20 {
				next <- i + 1
			}
			close(next)
		}()
		time.Sleep(time.Second)
		begin := time.Now()
		again := in.open(resumeAt("1-0"))
		require.Zero(t, time.Since(begin))
		require.Len(t, messages(t, again.end()), 21)
		<-stuck
		require.NoError(t, resp.Body.Close())
	})
}

func TestInvariant_H4_EventsAreStoredBeforeTheyAreWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := steps(f)
		store := &gateStore{streamable.NewRingStore(0), make(chan struct{})}
		in := session(t, f, &streamable.Options{EventStore: store})
		opened := make(chan *flow, 1)
		go func() { opened <- in.open(stepsCall(1)) }()
		next <- 1
		store.gate <- struct{}{} // the priming event, which goes out with the next one
		synctest.Wait()
		require.Empty(t, opened)
		store.gate <- struct{}{}
		w := <-opened
		w.next()
		require.Contains(t, w.next().data, "progress")
		next <- 2
		synctest.Wait()
		require.Empty(t, w.events)
		store.gate <- struct{}{}
		require.Contains(t, w.next().data, "progress")
		close(store.gate)
		close(next)
		w.end()
	})
}

// gateStore holds up what is appended until it is let through.
type gateStore struct {
	mcp.EventStore
	gate chan struct{}
}

func (s *gateStore) Append(ctx context.Context, session, stream string, data []byte) error {
	<-s.gate
	return s.EventStore.Append(ctx, session, stream, data)
}
