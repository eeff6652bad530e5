package tasks

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/heedmcp/heed/server"
)

// wireTask is a task as clients see it. Its zero fields are left out, but ttlMs,
// which is null for ever.
//
// Specification: extension io.modelcontextprotocol/tasks, tasks and polymorphic results.
type wireTask struct {
	ResultType    string `json:"resultType,omitempty"` // "": the server's "complete"
	TaskID        string `json:"taskId"`
	Status        Status `json:"status"`
	StatusMessage string `json:"statusMessage,omitempty"`
	CreatedAt     string `json:"createdAt"`
	LastUpdatedAt string `json:"lastUpdatedAt"`
	TTLMs         *int64 `json:"ttlMs"`
	PollMs        int64  `json:"pollIntervalMs,omitempty"`

	InputRequests map[string]server.InputRequest `json:"inputRequests,omitempty"`
	Result        json.RawMessage                `json:"result,omitempty"`
	Error         json.RawMessage                `json:"error,omitempty"`
}

// resultTask is the resultType of a call that became a task.
const resultTask = "task"

// seed is what the call that became the task is answered with: the task without
// what belongs to its state.
func (r *Record) seed() *wireTask {
	w := &wireTask{
		ResultType: resultTask, TaskID: r.ID, Status: r.Status, StatusMessage: r.Message,
		CreatedAt: instant(r.Created), LastUpdatedAt: instant(r.Updated),
	}
	if r.TTL > 0 {
		ms := r.TTL.Milliseconds()
		w.TTLMs = &ms
	}
	w.PollMs = r.Poll.Milliseconds()
	return w
}

// detailed is what tasks/get and notifications/tasks say.
func (r *Record) detailed() *wireTask {
	w := r.seed()
	w.ResultType = ""
	switch r.Status {
	case InputRequired:
		w.InputRequests = r.Questions
	case Completed:
		w.Result = r.Result
	case Failed:
		w.Error = r.Error
	}
	return w
}

// instant is ISO 8601, in UTC and with milliseconds.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// encode leaves text as it is, where encoding/json would escape what only HTML minds.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
