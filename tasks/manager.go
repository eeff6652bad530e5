package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
)

// Manager runs the tasks of a server. All methods may be called concurrently.
type Manager struct {
	server *server.Server
	o      Options // with defaults in force; never changed

	mu         sync.Mutex // guards the fields below; no lock is taken while it is held
	tasks      map[string]*task
	watches    map[string]map[*watch]struct{} // who listens, by task
	recovering bool                           // set once, by Recover: tasks of dead processes are looked for
	closed     bool                           // set once, by Close
	beatTimer  *time.Timer                    // the next look at the store; nil when there is no reason for one
	purgeTimer *time.Timer                    // the next purge; nil when nothing is kept that expires
	purgeAt    time.Time                      // when that is
	kept       int                            // about how many tasks have ended and will expire
}

// Enable adds the extension to s. Calls of tools that were registered with [Tool]
// may then become tasks. options may be nil. It returns an error when s has the extension
// already.
//
// What was added to s as middleware before sees the request and its answer, which may be a
// task; what is added later sees the work, in a task or not.
func Enable(s *server.Server, options *Options) (*Manager, error) {
	m := &Manager{
		server: s, o: options.withDefaults(),
		tasks: map[string]*task{}, watches: map[string]map[*watch]struct{}{},
	}
	err := s.AddExtension(&server.Extension{
		ID: ID, Methods: m.methods(), Listen: m.listenFields(), Middleware: m.intercept,
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close stops looking after the store: leases are not renewed any more, nothing is
// purged. It does not stop tasks; [server.Server.Drain], which is to be called first,
// does, and hands those over to the store that a later process is to go on with.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, timer := range []*time.Timer{m.beatTimer, m.purgeTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
	m.beatTimer, m.purgeTimer = nil, nil
}

// Running is how many tasks this process runs.
func (m *Manager) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tasks)
}

// Get returns a task's record, as an operator: whose it is does not matter. It
// returns ErrNotFound, or an error of the store.
func (m *Manager) Get(ctx context.Context, id string) (*Record, error) {
	if t := m.running(id); t != nil {
		return t.snapshot().Clone(), nil
	}
	return m.o.Store.Load(ctx, id)
}

// Cancel asks a task to stop as an operator, with origin Shutdown: it then ends with
// an error that says so, unless its handler returns a value. It returns ErrNotFound,
// or an error of the store; a task that has ended needs no stop.
func (m *Manager) Cancel(ctx context.Context, id, reason string) error {
	t := m.running(id)
	var r *Record
	if t == nil {
		var err error
		if r, err = m.o.Store.Load(ctx, id); err != nil {
			return err
		}
	}
	err := m.cancel(ctx, id, t, r, cancellation.Shutdown, reason)
	if errors.Is(err, error(errUnknown)) {
		return ErrNotFound
	}
	return err
}

func (m *Manager) log() *slog.Logger { return m.server.Logger() }

// running is the task if this process runs it, as far as it knows, else nil.
func (m *Manager) running(id string) *task {
	m.mu.Lock()
	t := m.tasks[id]
	m.mu.Unlock()
	if t == nil || t.lost.Load() || !t.stored() {
		return nil
	}
	return t
}

// stored tells whether the task can be asked for.
func (t *task) stored() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known == nil
}

// enlist takes a place for a task.
func (m *Manager) enlist(t *task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.o.MaxRunning > 0 && len(m.tasks) >= m.o.MaxRunning {
		return errTooMany
	}
	m.tasks[t.id] = t
	return nil
}

// forget takes a task out that has ended, or was none. A later run of it stays.
func (m *Manager) forget(t *task) {
	m.mu.Lock()
	if m.tasks[t.id] == t {
		delete(m.tasks, t.id)
	}
	m.mu.Unlock()
}
