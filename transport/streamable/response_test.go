package streamable_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flushWatcher calls flushed before it flushes.
type flushWatcher struct {
	http.ResponseWriter
	flushed func()
}

func (w flushWatcher) Flush() {
	w.flushed()
	w.ResponseWriter.(http.Flusher).Flush()
}

// A client that answers a question gets its 202 before the call that asked goes on:
// clients exist that break off the POST when their call has returned, and report that.
func TestAnswersAreAcceptedBeforeTheyCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ended := asking(f, same)
		h := streamable.NewHandler(f.s, nil)
		var accepted atomic.Bool
		in := serveHandler(t, f.s, h, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Answer") != "" {
				w = flushWatcher{w, func() {
					synctest.Wait()
					assert.Empty(t, ended, "the call goes on before the client knows that its answer has come")
					accepted.Store(true)
				}}
			}
			h.ServeHTTP(w, r)
		})).initialize(server.Version20251125, M{"sampling": M{}})
		w := in.open(classicTool(1, "ask", M{"tag": "a"}))
		q := question(w)
		in.accept(newCall("POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}}`, q.ID)).with("X-Answer", "1"))
		require.NoError(t, <-ended)
		require.True(t, accepted.Load())
		require.Len(t, messages(t, w.end()), 1)
	})
}
