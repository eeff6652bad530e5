package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/heedmcp/heed/tasks"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type taskView struct {
	ResultType string
	TaskID     string
	Status     string
	Content    []struct{ Text string }
	Result     struct{ Content []struct{ Text string } }
}

// Without the extension the tools of tasks are plain tools, in each era.
func TestTaskToolsWithoutTasks(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		assert.Equal(t, "Hello, Ada!", c.call("greet", map[string]any{"name": "Ada"}).text(t))
		e := c.call("slow_compute", map[string]any{"seconds": 2, "label": "x"})
		time.Sleep(1999 * time.Millisecond)
		require.False(t, e.answered())
		time.Sleep(2 * time.Millisecond)
		assert.Equal(t, "x: computed for 2 s", e.text(t))
		assert.NotNil(t, c.call("failing_job", nil).reply(t).Error, "it must be a task")
	})
}

func TestTaskTools(t *testing.T) {
	inBubble(t, true, `{"elicitation":{},"extensions":{"`+tasks.ID+`":{}}}`, func(t *testing.T, c *client) {
		begin := func(tool string, arguments map[string]any) string {
			t.Helper()
			e := c.call(tool, arguments)
			time.Sleep(200 * time.Millisecond)
			v := decodeResult[taskView](t, e)
			require.Equal(t, "task", v.ResultType)
			return v.TaskID
		}
		get := func(id string) taskView {
			t.Helper()
			return decodeResult[taskView](t, c.request("tasks/get", map[string]any{"taskId": id}))
		}
		done := begin("slow_compute", map[string]any{"seconds": 2, "label": "x"})
		stopped := begin("slow_compute", map[string]any{"seconds": 60})
		fails, panics := begin("failing_job", nil), begin("protocol_error_job", nil)
		assert.Equal(t, "working", get(done).Status)
		c.request("tasks/cancel", map[string]any{"taskId": stopped}).result(t)
		time.Sleep(3 * time.Second)
		assert.Equal(t, "x: computed for 2 s", get(done).Result.Content[0].Text)
		assert.Equal(t, "cancelled", get(stopped).Status)
		assert.Equal(t, "completed", get(fails).Status)
		assert.Equal(t, "failed", get(panics).Status)

		for tool, keys := range map[string]int{"confirm_delete": 1, "multi_input": 2} {
			arguments := map[string]any{}
			if tool == "confirm_delete" {
				arguments["filename"] = "f"
			}
			id := begin(tool, arguments)
			require.Equal(t, "input_required", get(id).Status)
			var asked struct {
				InputRequests map[string]json.RawMessage `json:"inputRequests"`
			}
			require.NoError(t, json.Unmarshal(c.request("tasks/get", map[string]any{"taskId": id}).result(t), &asked))
			require.Len(t, asked.InputRequests, keys)
			answers := map[string]any{}
			for key := range asked.InputRequests {
				answers[key] = accept(map[string]any{"confirm": true, "name": "Ada"})
			}
			c.request("tasks/update", map[string]any{"taskId": id, "inputResponses": answers}).result(t)
			v := get(id)
			assert.Equal(t, "completed", v.Status)
			assert.Contains(t, []string{"f was deleted", "Ada and Ada"}, v.Result.Content[0].Text)
		}
		c.fixture.tasks.Close()
	})
}
