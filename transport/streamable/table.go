package streamable

import (
	"container/list"
	"errors"
	"sync"
	"time"
)

// Invariants of this file. Each has a test named after it.
//
//	T1  A session with an open HTTP request, or a handler that runs, is neither
//	    evicted nor expired.
//	T2  A session that was taken out is found by nobody any more.
//	T3  The order is that of the last use, the longest unused first.

var errTooManySessions = errors.New("streamable: too many sessions")

// table holds the sessions of a handler.
type table struct {
	max   int           // 0 or less: no bound; never changed
	idle  time.Duration // 0 or less: none expires; never changed
	start time.Time     // of its clock; never changed

	mu       sync.Mutex // guards the fields below and those of sessions that say so
	sessions map[string]*session
	order    list.List   // of *session, by last use
	timer    *time.Timer // fires when the first may have expired; nil before there was any
	closed   bool        // no more sessions; set once, by close
}

func (t *table) init(maximum int, idle time.Duration) {
	t.max, t.idle, t.start = maximum, idle, time.Now()
	t.sessions = map[string]*session{}
}

// now is the time on the table's clock: a third of a time.Time, for each session.
func (t *table) now() time.Duration { return time.Since(t.start) }

// add takes a session in, and another one out if there are too many. It returns
// an error when all of them are in use.
func (t *table) add(s *session) (evicted *session, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errTooManySessions
	}
	if t.max > 0 && len(t.sessions) >= t.max {
		if evicted = t.longestIdleLocked(); evicted == nil {
			return nil, errTooManySessions
		}
		t.removeLocked(evicted)
	}
	t.sessions[s.id] = s
	s.used = t.now()
	s.place = t.order.PushBack(s)
	if t.idle > 0 && t.timer == nil {
		t.timer = time.AfterFunc(t.idle, t.expire)
	} else if t.idle > 0 && t.order.Len() == 1 {
		t.timer.Reset(t.idle)
	}
	return evicted, nil
}

func (t *table) longestIdleLocked() *session {
	for e := t.order.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*session); !s.busyLocked() {
			return s
		}
	}
	return nil
}

// acquire finds the session with that id if it is the principal's own, and keeps
// it until release. To anybody else it does not exist.
func (t *table) acquire(id, principal string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil || s.principal != principal {
		return nil
	}
	s.active++
	t.touchLocked(s)
	return s
}

// release gives back what acquire returned.
func (t *table) release(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.active--
	t.touchLocked(s)
}

func (t *table) touchLocked(s *session) {
	s.used = t.now()
	if s.place != nil {
		t.order.MoveToBack(s.place)
	}
}

// remove takes a session out. It reports false when it is out already.
func (t *table) remove(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.place == nil {
		return false
	}
	t.removeLocked(s)
	return true
}

func (t *table) removeLocked(s *session) {
	delete(t.sessions, s.id)
	t.order.Remove(s.place)
	s.place = nil
}

// expire ends the sessions that were idle for too long. It is called by the timer.
func (t *table) expire() {
	var expired []*session
	t.mu.Lock()
	now := t.now()
	for e := t.order.Front(); e != nil; e = t.order.Front() {
		s := e.Value.(*session)
		if now-s.used < t.idle {
			t.timer.Reset(t.idle - (now - s.used))
			break
		}
		if s.busyLocked() {
			t.touchLocked(s) // it is in use right now
			continue
		}
		t.removeLocked(s)
		expired = append(expired, s)
	}
	t.mu.Unlock()
	for _, s := range expired {
		s.end(endExpired)
	}
}

// close takes all sessions out and lets none in any more.
func (t *table) close() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	all := make([]*session, 0, len(t.sessions))
	for _, s := range t.sessions {
		all = append(all, s)
		t.removeLocked(s)
	}
	return all
}

// all lists the sessions.
func (t *table) all() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*session, 0, len(t.sessions))
	for _, s := range t.sessions {
		all = append(all, s)
	}
	return all
}
