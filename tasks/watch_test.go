package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (c *client) listen(filter M) *exchange {
	e := c.start("subscriptions/listen", M{"notifications": filter})
	c.r.t.Cleanup(func() { e.call.Cancel(cancellation.Disconnect, "the test is over") })
	settle()
	return e
}

// told are the states that a subscription was told of.
func told(t *testing.T, e *exchange) (states []*state) {
	t.Helper()
	for _, raw := range e.messages("notifications/tasks") {
		s := &state{raw: string(raw)}
		require.NoError(t, json.Unmarshal(raw, s))
		states = append(states, s)
	}
	return states
}

// Each notification says what tasks/get would say, and which subscription it belongs to.
func TestListen(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("asks", possible, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			name, err := ask(ctx, req, "Who?")
			return text("%s", name), err
		})
		c := r.client()
		id := c.begin(t, "asks", nil)
		settle()
		e := c.listen(M{"taskIds": []string{id, "unknown", id}, "toolsListChanged": true})
		ack := e.messages("notifications/subscriptions/acknowledged")
		require.Len(t, ack, 1)
		assert.JSONEq(t, `{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{"toolsListChanged":true,"taskIds":["`+id+`"]}}`, string(ack[0]))
		assert.Equal(t, "notifications/subscriptions/acknowledged", e.sent[0].Method)

		key := c.get(t, id).keys()[0]
		c.update(t, id, M{key: accept(M{"name": "<Ada & Bob>"})})
		settle()
		states := told(t, e)
		require.GreaterOrEqual(t, len(states), 2)
		require.LessOrEqual(t, len(states), 3, "what was between may be told with the end")
		assert.Equal(t, "input_required", states[0].Status)
		assert.Equal(t, []string{key}, states[0].keys())
		var params, got M
		last := states[len(states)-1]
		require.NoError(t, json.Unmarshal([]byte(last.raw), &params))
		require.NoError(t, json.Unmarshal([]byte(c.get(t, id).raw), &got))
		assert.Equal(t, M{"io.modelcontextprotocol/subscriptionId": float64(2)}, params["_meta"])
		for _, m := range []M{params, got} {
			delete(m, "_meta")
			delete(m, "resultType")
		}
		assert.Equal(t, got, params)
		assert.Contains(t, last.raw, "<Ada & Bob>")
		for _, m := range e.sent {
			assert.NotContains(t, []string{"notifications/progress", "notifications/message"}, m.Method)
		}
		e.call.Cancel(cancellation.Disconnect, "")
		settle()
		late := c.listen(M{"taskIds": []string{id}})
		require.Len(t, told(t, late), 1, "who comes late is told as well")
		late.call.Cancel(cancellation.Disconnect, "")
	})
}

// Progress is told, but no more often than it is stored.
func TestListenToProgress(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("steps", possible, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			for i := range 1000 {
				time.Sleep(10 * time.Millisecond)
				if err := req.Progress(ctx, float64(i+1), 1000, ""); err != nil {
					return nil, err
				}
			}
			return text("done"), nil
		})
		c := r.client()
		id := c.begin(t, "steps", nil)
		e := c.listen(M{"taskIds": []string{id}})
		time.Sleep(20 * time.Second)
		settle()
		states := told(t, e)
		assert.GreaterOrEqual(t, len(states), 10)
		assert.LessOrEqual(t, len(states), 14)
		assert.Equal(t, "completed", states[len(states)-1].Status)
		e.call.Cancel(cancellation.Disconnect, "")
	})
}

func TestListenRefusesWhatIsWrong(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		c := r.client()
		failure := r.without().request("subscriptions/listen", M{"notifications": M{"taskIds": []string{"x"}}}).Error
		require.NotNil(t, failure)
		assert.Equal(t, -32021, failure.Code)
		for _, wrong := range []any{nil, 7, "x", M{}, []any{7}, strings.Split(strings.Repeat("x,", 1024), ",")} {
			assert.Equal(t, -32602, c.request("subscriptions/listen", M{"notifications": M{"taskIds": wrong}}).Error.Code, fmt.Sprintf("%.40v", wrong))
		}
		e := c.listen(M{"taskIds": []string{}})
		assert.JSONEq(t, `{}`, string(field(t, e.messages("notifications/subscriptions/acknowledged")[0], "notifications")))
		e.call.Cancel(cancellation.Disconnect, "")
		settle()
		assert.Zero(t, r.server.Stats().Listening)
	})
}

func field(t *testing.T, raw json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &fields))
	return fields[name]
}

// A task that another process runs is told of as well, if later.
func TestListenElsewhere(t *testing.T) {
	memory := tasks.NewMemory(0, 0)
	inBubble(t, &tasks.Options{Store: memory}, func(t *testing.T, r *rig) {
		r.add("slow", possible, lasting(time.Minute))
		id := r.client().begin(t, "slow", nil)
		other := newRig(t, &tasks.Options{Store: memory}, nil)
		e := other.client().listen(M{"taskIds": []string{id}})
		require.Len(t, told(t, e), 1)
		time.Sleep(2 * time.Minute)
		settle()
		states := told(t, e)
		require.Len(t, states, 2)
		assert.Equal(t, "completed", states[1].Status)
		e.call.Cancel(cancellation.Disconnect, "")
		settle()
	})
}
