package tasks

import (
	"context"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// Looking after the store. While this process runs tasks, somebody listens, or Recover was
// called, leases are renewed and signals of other processes are looked for. What has
// expired is purged. Nothing of this has a goroutine of its own: there are two timers, and
// none when there is nothing to do.

const (
	beatsPerLease = 3
	purgeEvery    = time.Minute
	claimAtOnce   = 64 // how many tasks are claimed in one go
)

// arm sees to it that the store is looked at.
func (m *Manager) arm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armLocked()
}

func (m *Manager) armLocked() {
	if m.closed || m.beatTimer != nil || len(m.tasks) == 0 && len(m.watches) == 0 && !m.recovering {
		return
	}
	m.beatTimer = time.AfterFunc(m.o.Lease/beatsPerLease, m.beat)
}

// beat renews leases, and does what other processes have asked for.
func (m *Manager) beat() {
	renewed := m.renew()
	m.mu.Lock()
	recovering := m.recovering
	var elsewhere []string
	for id := range m.watches {
		if m.tasks[id] == nil {
			elsewhere = append(elsewhere, id)
		}
	}
	m.mu.Unlock()
	// Without leases of its own this process would take over its own tasks.
	if recovering && renewed && !m.server.Draining() {
		ctx, cancel := m.storeContext()
		if _, _, err := m.claim(ctx); err != nil {
			m.log().Error("tasks of other processes could not be looked for", "error", err)
		}
		cancel()
	}
	for _, id := range elsewhere {
		m.tell(id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beatTimer = nil
	m.armLocked()
}

// renew prolongs the leases, and reports whether it could.
func (m *Manager) renew() bool {
	ctx, cancel := m.storeContext()
	defer cancel()
	signals, err := m.o.Store.Renew(ctx, m.o.Owner, time.Now().Add(m.o.Lease))
	if err != nil {
		m.log().Error("leases of tasks could not be renewed", "error", err)
		return false
	}
	for _, s := range signals {
		t := m.running(s.Task)
		if t == nil {
			continue
		}
		if s.Stop != nil {
			t.stop(originOf(s.Stop.Origin), s.Stop.Reason)
		}
		if len(s.Responses) > 0 {
			t.answer(s.Responses)
		}
	}
	return true
}

// originOf is the origin that prints itself as text.
func originOf(text string) cancellation.Origin {
	for _, o := range []cancellation.Origin{cancellation.Peer, cancellation.Timeout, cancellation.Shutdown} {
		if o.String() == text {
			return o
		}
	}
	return cancellation.Shutdown
}

// purgeLater sees to it that a task that has ended is forgotten in time.
func (m *Manager) purgeLater(r *Record) {
	if r.TTL <= 0 || !r.Status.Ended() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept++
	m.schedulePurgeLocked(r.Expires())
}

func (m *Manager) schedulePurgeLocked(at time.Time) {
	if m.closed || m.purgeTimer != nil && !at.Before(m.purgeAt) {
		return
	}
	if m.purgeTimer != nil {
		m.purgeTimer.Stop()
	}
	m.purgeAt = at
	m.purgeTimer = time.AfterFunc(max(time.Until(at), 0), m.purge)
}

// purge removes what has expired.
func (m *Manager) purge() {
	ctx, cancel := context.WithTimeout(context.Background(), m.o.StoreTimeout)
	defer cancel()
	n, err := m.o.Store.Purge(ctx, time.Now())
	if err != nil {
		m.log().Error("expired tasks could not be purged", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purgeTimer = nil
	m.kept = max(m.kept-n, 0)
	if m.kept > 0 || m.recovering {
		m.schedulePurgeLocked(time.Now().Add(purgeEvery))
	}
}
