package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestBatches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		in := serve(t, f.s, nil).initialize(server.Version20250326, nil)
		a := in.do(newCall("POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"no/such"},3]`))
		require.Equal(t, 200, a.status)
		require.True(t, strings.HasPrefix(a.body, "["), a.body)
		require.Contains(t, a.body, `"id":1,"result"`)
		require.Contains(t, a.body, `-32601`)
		require.Contains(t, a.body, `-32600`)

		a = in.do(newCall("POST", `[{"jsonrpc":"2.0","method":"notifications/x"}]`))
		require.Equal(t, http.StatusAccepted, a.status)
		require.Empty(t, a.body)
		require.Equal(t, http.StatusBadRequest, in.do(newCall("POST", `[]`)).status)

		w := in.open(newCall("POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"tag":"a"}}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"tag":"b"}}}]`))
		in.accept(cancelOf(1, "r"))
		f.next("a")
		synctest.Wait()
		f.untouched("b")
		in.accept(cancelOf(2, "r"))
		f.next("b")
		require.Empty(t, messages(t, w.end()))
	})
}

// What is kept of a batch for a client that is away is not replayed of those of its requests
// that were cancelled since.
func TestInvariant_H1_HoldsForThePartsOfABatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		next := map[string]chan int{"a": make(chan int), "b": make(chan int)}
		server.MustAddTool(f.s, &mcp.Tool{Name: "paced"}, func(ctx context.Context, req *servercontext.Request, in tagged) (string, error) {
			for n := range next[in.Tag] {
				_ = req.Progress(context.Background(), float64(n), 0, "") // dropped after the cancel
			}
			return in.Tag, nil
		})
		in := serve(t, f.s, nil).initialize(server.Version20250326, nil)
		element := func(id int, tag string) M {
			return message(id, "tools/call", M{"name": "paced", "arguments": M{"tag": tag}, "_meta": progress(tag)})
		}
		step := func(tag string, n int) {
			next[tag] <- n
			synctest.Wait()
		}
		// reports are the tags and figures of the progress among events.
		reports := func(events ...event) (all []string) {
			for _, m := range messages(t, events) {
				var p struct {
					ProgressToken string
					Progress      float64
				}
				require.NoError(t, json.Unmarshal(m.Params, &p))
				all = append(all, fmt.Sprint(p.ProgressToken, p.Progress))
			}
			return all
		}
		w := in.open(newCall("POST", encode([]M{element(1, "a"), element(2, "b")})))
		step("a", 1)
		one := w.next()
		require.Equal(t, []string{"a1"}, reports(one))
		w.drop()
		synctest.Wait()
		step("a", 2)
		step("a", 3)
		step("b", 1)
		step("a", 4)
		again := in.open(resumeAt(one.id))
		var missed []event
		for range 4 {
			missed = append(missed, again.next())
		}
		require.Equal(t, []string{"a2", "a3", "b1", "a4"}, reports(missed...), "nothing is cancelled yet")
		again.drop()
		synctest.Wait()
		in.accept(cancelOf(1, "r"))
		step("a", 5)
		again = in.open(resumeAt(one.id))
		b1 := again.next()
		require.Equal(t, missed[2], b1, "the others' is replayed, with the id that it had")
		step("b", 2)
		b2 := again.next()
		require.Equal(t, []string{"b2"}, reports(b2))
		close(next["a"])
		close(next["b"])
		answer := again.next()
		require.Empty(t, again.end())
		require.Contains(t, answer.data, `"id":2`)
		require.NotContains(t, answer.data, `"id":1`)

		// The batch is answered now, and its tail may have been lost on the way.
		require.Equal(t, []event{b1, b2, answer}, in.do(resumeAt(one.id)).events(t))
		require.Equal(t, []event{b2, answer}, in.do(resumeAt(missed[3].id)).events(t), "from an id of the cancelled one too")
	})
}
