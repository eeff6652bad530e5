package tasks

import (
	"context"
	"crypto/rand"
)

// Task is what a handler can know about, and do for, the task that it works for.
type Task struct{ t *task }

type contextKey struct{}

func withTask(ctx context.Context, t *task) context.Context {
	return context.WithValue(ctx, contextKey{}, t)
}

// FromContext returns the task that ctx belongs to, or may come to belong to when
// its call takes long enough. It reports false where there will be no task: the
// client knows none, or the tool has none.
func FromContext(ctx context.Context) (*Task, bool) {
	t, ok := ctx.Value(contextKey{}).(*task)
	if !ok {
		return nil, false
	}
	return &Task{t}, true
}

// ID is the task's id. It is the same each time the handler is called for the
// task, also in another process, and so can name what the handler does for it: the id
// of an operation. Whoever knows it may ask for the task, if they are who started
// it; do not print it where others read.
func (t *Task) ID() string { return t.t.id }

// Run is how often the task was begun: 1, and one more with each process that
// went on with it.
func (t *Task) Run() int { return t.t.snapshot().Run }

// Begin makes the call a task now, without waiting for [ToolOptions.After]. It
// does nothing for one that is a task already. Returned when: there is no room
// for another task, the server is shutting down, the store fails; the call
// then goes on as it was.
func (t *Task) Begin() error { return t.t.begin() }

// SetMessage says what people should be told about the task, as progress does. It is cut
// to 1000 bytes, and ignored once the task was asked to stop.
func (t *Task) SetMessage(text string) { t.t.setMessage(text) }

// newID returns an id that nobody can guess: 130 random bits.
func newID() string { return rand.Text() }
