package tasks_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

func TestTasksAreTheirPrincipals(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("asks", possible, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			name, err := ask(ctx, req, "Who?")
			return text("%s", name), err
		})
		alice := r.as("alice")
		id := alice.begin(t, "asks", nil)
		settle()
		key := alice.get(t, id).keys()[0]
		for _, other := range []*client{r.as("mallory"), r.client()} {
			requireUnknown(t, other.request("tasks/get", M{"taskId": id}))
			requireUnknown(t, other.request("tasks/cancel", M{"taskId": id}))
			requireUnknown(t, other.request("tasks/update", M{"taskId": id, "inputResponses": M{key: accept(M{"name": "Mallory"})}}))
			listen := other.start("subscriptions/listen", M{"notifications": M{"taskIds": []string{id}}})
			settle()
			assert.NotContains(t, string(listen.messages("notifications/subscriptions/acknowledged")[0]), id)
			listen.call.Cancel(cancellation.Disconnect, "")
		}
		// Alice may use another connection, and another client.
		r.as("alice").update(t, id, M{key: accept(M{"name": "Alice"})})
		settle()
		assert.Equal(t, "Alice", r.as("alice").get(t, id).Result.Content[0].Text)
		requireUnknown(t, r.as("mallory").request("tasks/get", M{"taskId": id}))
	})
}

func TestMethodsRefuseWhatIsWrong(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		c := r.client()
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			params := M{"taskId": "unknown", "inputResponses": M{}}
			requireUnknown(t, c.request(method, params))
			failure := r.without().request(method, params).Error
			assert.Equal(t, -32021, failure.Code)
			assert.JSONEq(t, `{"requiredCapabilities":{"extensions":{"`+tasks.ID+`":{}}}}`, string(failure.Data))
			for _, wrong := range []any{nil, 7, M{}, []string{"x"}} {
				assert.Equal(t, -32602, c.request(method, M{"taskId": wrong, "inputResponses": M{}}).Error.Code)
			}
		}
		for _, wrong := range []any{nil, 7, []string{}} {
			assert.Equal(t, -32602, c.request("tasks/update", M{"taskId": "x", "inputResponses": wrong}).Error.Code)
		}
		assert.Equal(t, -32602, c.request("tasks/update", M{"taskId": "x"}).Error.Code)
		for _, gone := range []string{"tasks/result", "tasks/list", "tasks/x"} {
			assert.Equal(t, -32601, c.request(gone, M{"taskId": "x"}).Error.Code)
		}
		discovered := c.request("server/discover", nil)
		assert.Contains(t, string(discovered.Result), `"extensions":{"`+tasks.ID+`":{}}`)
		assert.Equal(t, "taskId", r.server.NameParam("tasks/get"))
		assert.Equal(t, "", r.server.NameParam("tasks/list"))
	})
}
