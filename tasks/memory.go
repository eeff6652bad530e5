package tasks

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a [Store] that keeps tasks in the memory of this process. It is bounded:
// when it is full no task is created, since none may be forgotten before its time.
type Memory struct {
	maxTasks int // never changed
	maxBytes int // never changed

	mu      sync.Mutex // guards the fields below; no lock is taken while it is held
	records map[string]*Record
	signals []Signal
	bytes   int // about what records take; kept by put and remove
}

const (
	defaultMaxTasks = 16384
	defaultMaxBytes = 256 << 20
)

// NewMemory returns an empty store for at most maxTasks tasks (0: 16384) of about
// maxBytes bytes in all (0: 256 MiB). Results of tasks that were created in
// time are kept whatever their size.
func NewMemory(maxTasks, maxBytes int) *Memory {
	return &Memory{
		maxTasks: cmp.Or(max(maxTasks, 0), defaultMaxTasks),
		maxBytes: cmp.Or(max(maxBytes, 0), defaultMaxBytes),
		records:  map[string]*Record{},
	}
}

// Len is how many tasks are kept.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
}

// Create implements Store.
func (m *Memory) Create(_ context.Context, r *Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.records) >= m.maxTasks || m.bytes+r.Size() > m.maxBytes {
		m.purgeLocked(time.Now())
		if len(m.records) >= m.maxTasks || m.bytes+r.Size() > m.maxBytes {
			return ErrFull
		}
	}
	m.putLocked(r.Clone())
	return nil
}

// Load implements Store.
func (m *Memory) Load(_ context.Context, id string) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[id]
	if r == nil || r.Expired(time.Now()) {
		return nil, ErrNotFound
	}
	return r.Clone(), nil
}

// Save implements Store.
func (m *Memory) Save(_ context.Context, r *Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.records[r.ID]
	switch {
	case before == nil:
		return ErrNotFound
	case before.Status.Ended():
		return ErrEnded
	case before.Run != r.Run:
		return ErrTaken
	}
	m.putLocked(r.Clone())
	return nil
}

// Post implements Store.
func (m *Memory) Post(_ context.Context, s Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[s.Task]
	switch {
	case r == nil:
		return ErrNotFound
	case r.Status.Ended():
		return ErrEnded
	}
	waiting, bytes := 0, 0
	for _, other := range m.signals {
		if other.Task == s.Task {
			waiting++
			bytes += other.size()
		}
	}
	if maxSignals, maxBytes := s.Room(); waiting >= maxSignals || bytes >= maxBytes {
		return ErrFull
	}
	m.signals = append(m.signals, s)
	return nil
}

// Renew implements Store.
func (m *Memory) Renew(_ context.Context, owner string, until time.Time) (signals []Signal, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.Owner == owner && !r.Status.Ended() {
			r.LeaseUntil = until
		}
	}
	var kept []Signal
	for _, s := range m.signals {
		r := m.records[s.Task]
		switch {
		case r == nil || r.Status.Ended():
		case r.Owner == owner:
			signals = append(signals, s)
		default:
			kept = append(kept, s)
		}
	}
	m.signals = kept
	return signals, nil
}

// Claim implements Store.
func (m *Memory) Claim(_ context.Context, owner string, now, until time.Time, limit int) ([]*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var free []*Record
	for _, r := range m.records {
		if !r.Status.Ended() && !r.LeaseUntil.After(now) {
			free = append(free, r)
		}
	}
	slices.SortFunc(free, func(a, b *Record) int { return a.Created.Compare(b.Created) })
	free = free[:min(limit, len(free))]
	for i, r := range free {
		r.Owner, r.LeaseUntil = owner, until
		r.Run++
		free[i] = r.Clone()
	}
	return free, nil
}

// Release implements Store.
func (m *Memory) Release(_ context.Context, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.Owner == owner && !r.Status.Ended() {
			r.LeaseUntil = time.Time{}
		}
	}
	return nil
}

// Purge implements Store.
func (m *Memory) Purge(_ context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.purgeLocked(now), nil
}

func (m *Memory) purgeLocked(now time.Time) (n int) {
	for id, r := range m.records {
		if r.Expired(now) {
			m.bytes -= r.Size()
			delete(m.records, id)
			n++
		}
	}
	return n
}

// putLocked keeps r, which nobody else holds.
func (m *Memory) putLocked(r *Record) {
	if before := m.records[r.ID]; before != nil {
		m.bytes -= before.Size()
	}
	m.records[r.ID] = r
	m.bytes += r.Size()
}
