package tasks

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
)

// maxWatched bounds the tasks that one subscription may name.
const maxWatched = 1024

var seed = maphash.MakeSeed()

// watch is one subscription to tasks.
type watch struct {
	changed func(id string) // has tell called for the task; never changed

	mu   sync.Mutex        // guards the field below; no lock is taken while it is held
	told map[string]uint64 // digest of what was told last, by task
}

func (m *Manager) listenFields() []server.ListenField {
	return []server.ListenField{{Name: "taskIds", Open: m.listen}}
}

// listen opens a subscription to tasks. Those that are not the client's are left out.
// Each is told of as it is, and then with every change.
//
// Specification: extension io.modelcontextprotocol/tasks, task status notifications.
func (m *Manager) listen(ctx context.Context, req *servercontext.Request, asked json.RawMessage, changed func(string)) (*server.Listening, error) {
	var ids []string
	if err := json.Unmarshal(asked, &ids); err != nil || ids == nil {
		return nil, invalidParams("params.notifications.taskIds must be an array of strings")
	}
	if len(ids) > maxWatched {
		return nil, invalidParams("params.notifications.taskIds has too many entries")
	}
	w := &watch{changed: changed, told: map[string]uint64{}}
	var granted []string
	for _, id := range ids {
		if slices.Contains(granted, id) {
			continue
		}
		if _, _, err := m.find(ctx, req, id); err == nil {
			granted = append(granted, id)
		}
	}
	m.watch(w, granted)
	for _, id := range granted {
		changed(id)
	}
	l := &server.Listening{
		Tell: func(ctx context.Context, id string) (string, json.RawMessage) { return m.notification(ctx, req, w, id) },
		Stop: func() { m.unwatch(w, granted) },
	}
	if len(granted) > 0 {
		l.Granted = granted
	}
	return l, nil
}

// notification tells of a task as tasks/get would now, if there is anything new.
func (m *Manager) notification(ctx context.Context, req *servercontext.Request, w *watch, id string) (string, json.RawMessage) {
	_, r, err := m.find(ctx, req, id)
	if err != nil {
		return "", nil // forgotten meanwhile
	}
	params, err := encode(r.detailed())
	if err != nil {
		m.log().Error("a task cannot be encoded", "task", id, "error", err)
		return "", nil
	}
	digest := maphash.Bytes(seed, params)
	w.mu.Lock()
	last, before := w.told[id]
	w.told[id] = digest
	w.mu.Unlock()
	if before && digest == last {
		return "", nil
	}
	return "notifications/tasks", params
}

func (m *Manager) watch(w *watch, ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if m.watches[id] == nil {
			m.watches[id] = map[*watch]struct{}{}
		}
		m.watches[id][w] = struct{}{}
	}
	m.armLocked()
}

func (m *Manager) unwatch(w *watch, ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.watches[id], w)
		if len(m.watches[id]) == 0 {
			delete(m.watches, id)
		}
	}
}

// tell wakes whoever listens to a task.
func (m *Manager) tell(id string) {
	m.mu.Lock()
	watches := make([]*watch, 0, len(m.watches[id]))
	for w := range m.watches[id] {
		watches = append(watches, w)
	}
	m.mu.Unlock()
	for _, w := range watches {
		w.changed(id)
	}
}
