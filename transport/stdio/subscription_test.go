package stdio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const statelessMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func subscriptionOf(t *testing.T, m message) string {
	t.Helper()
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal(m.Params, &params), m.raw)
	return string(params.Meta["io.modelcontextprotocol/subscriptionId"])
}

// Subscriptions share a stream, and the end of one, which is silent, leaves the others.
func TestSeveralSubscriptionsOnOneStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		c := serve(t, f, nil)
		for _, id := range []string{"1", `"1"`, "2"} {
			c.line(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, id, statelessMeta)
			m := c.next()
			assert.Equal(t, "notifications/subscriptions/acknowledged", m.Method)
			assert.Equal(t, id, subscriptionOf(t, m))
		}
		added := 0
		told := func() (ids []string) {
			added++
			server.MustAddTool(f.Server, &mcp.Tool{Name: fmt.Sprintf("more-%d", added)}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil })
			time.Sleep(time.Second)
			synctest.Wait()
			for c.has() {
				m := c.next()
				assert.Equal(t, "notifications/tools/list_changed", m.Method, m.raw)
				ids = append(ids, subscriptionOf(t, m))
			}
			return ids
		}
		cancel := func(id string) {
			c.cancel(id)
			synctest.Wait() // it is read, and has had its effect
		}
		assert.ElementsMatch(t, []string{"1", `"1"`, "2"}, told())
		cancel("1")
		assert.ElementsMatch(t, []string{`"1"`, "2"}, told(), "nothing more for the one that was cancelled, no result either")
		cancel("2")
		assert.ElementsMatch(t, []string{`"1"`}, told())
		cancel(`"1"`)
		assert.Empty(t, told())
		c.end()
	})
}

// URIs with control characters are answered, and the stream lives.
func TestOddURIsAreAnswered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		server.MustAddResourceTemplate(f.Server, &mcp.ResourceTemplate{URITemplate: "odd://{+x}", Name: "odd"}, func(_ context.Context, _ *servercontext.Request, in server.ReadIn) (string, error) {
			return "", mcp.ResourceNotFoundError(in.URI)
		})
		c := serve(t, f, nil)
		c.initialize()
		for id, uri := range []string{`odd:\/\/a`, `odd:\/\/\u0001`, `x\u0000\n\u001b`, `\u2028`, `%00`} {
			c.line(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"%s"}}`, id, uri)
			m := c.answer(id)
			require.NotNil(t, m.Error, m.raw)
			assert.Equal(t, -32002, m.Error.Code)
		}
		c.echo(9)
		c.end()
	})
}

// has tells whether the server has written something that was not taken.
func (c *client) has() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lines) > 0
}
