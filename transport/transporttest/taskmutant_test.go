package transporttest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// instead answers a request in the good server's place, when something is so. Rules that
// tidy up behind themselves are not hindered.
func instead(member string, when func(b *broken, c, task *call) bool) fault {
	return fault{request: func(b *broken, c *call, _ []wire.Message) bool {
		if strings.HasPrefix(c.id, `"control-`) || !when(b, c, b.task(c)) {
			return true
		}
		b.toClient(`{"jsonrpc":"2.0","id":%s,%s}`, c.id, member)
		return false
	}}
}

const (
	acknowledged = `"result":{"resultType":"complete"}`
	refused      = `"error":{"code":-32602,"message":"the task was asked to stop before"}`
)

// says changes what the answers of tasks/get say.
func says(old, other string, when func(task *call) bool) fault {
	return fault{answer: func(b *broken, c *call, m wire.Message) bool {
		if task := b.task(c); c.method != "tasks/get" || task == nil || !when(task) {
			return true
		}
		b.toClient("%s", strings.Replace(string(m.Raw), old, other, 1))
		return false
	}}
}

// taskMutants break each rule about tasks.
func taskMutants() []mutant {
	return []mutant{
		{rule: "task-cancelled", setting: stateless, fault: instead(acknowledged, func(_ *broken, c, task *call) bool {
			return c.method == "tasks/cancel" && task != nil && task.tool == "cancel_poll" && task.wishes == 1
		}), also: []string{"task-final"}},
		{rule: "task-cooperative", setting: stateless, fault: says(`"working"`, `"cancelled"`, func(task *call) bool {
			return task.tool == "cancel_ignore" && task.wishes > 0
		})},
		{rule: "task-final", setting: stateless, fault: says(`"completed"`, `"cancelled"`, func(task *call) bool { return task.wishes > 0 })},
		{rule: "task-cancel-repeated", setting: stateless, fault: instead(refused, func(_ *broken, c, task *call) bool {
			return c.method == "tasks/cancel" && task != nil && task.wishes == 2
		}), also: []string{"task-final"}},
		{rule: "task-unknown", setting: stateless, fault: instead(acknowledged, func(_ *broken, c, task *call) bool {
			return c.method == "tasks/cancel" && task == nil
		})},
		{rule: "task-notification", setting: stateless, fault: fault{cancel: func(b *broken, _ wire.Message, target *call, _ []wire.Message) bool {
			if target != nil && target.task != "" {
				meta := target.message.Param("_meta")
				b.toServer("%s", fmt.Sprintf(`{"jsonrpc":"2.0","id":"control-stop","method":"tasks/cancel","params":{"_meta":%s,"taskId":%q}}`, meta, target.task))
			}
			return true
		}}},
		{rule: "task-asking-cancelled", setting: stateless, fault: instead(acknowledged, func(_ *broken, c, task *call) bool {
			return c.method == "tasks/cancel" && task != nil && task.tool == "cancel_nested"
		})},
	}
}

// Whoever names a task is taken for the one who has started it.
func foreignTasks(_ *brokenWeb, _ http.ResponseWriter, r *http.Request, m wire.Message) bool {
	if strings.HasPrefix(m.Method, "tasks/") {
		r.Header.Set("Authorization", somebody)
	}
	return false
}

func webTaskMutants() []webMutant {
	return []webMutant{
		{rule: "task-isolation", setting: transporttest.HTTPStateless, fault: foreignTasks},
		{rule: "task-isolation", setting: transporttest.HTTPStatelessJSON, fault: foreignTasks},
		{rule: "task-cancelled", setting: transporttest.HTTPStateless, also: []string{"task-final", "task-cancel-repeated", "task-asking-cancelled"},
			fault: func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
				if m.Method != "tasks/cancel" {
					return false
				}
				// Looked for, so that only whose task it is has it acknowledged.
				const looks = "tasks/get"
				r.Header["Mcp-Method"] = []string{looks}
				r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(m.Raw), m.Method, looks, 1)))
				r.ContentLength = -1
				got := httptest.NewRecorder()
				b.next.ServeHTTP(got, r)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(got.Code)
				if strings.Contains(got.Body.String(), `"error"`) {
					_, _ = got.Body.WriteTo(w)
					return true
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, acknowledged)
				return true
			}},
	}
}
