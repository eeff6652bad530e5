package streamable

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// Invariants of this file. Each has a test named after it.
//
//	A1  An alarm rings once, when the delay has passed since it was set, unless it was
//	    taken back before.
//	A2  Once unset has returned, the alarm rings no more, and no ring of it is under way.

// alarms are limits of time, of one and the same length, that hardly any request
// reaches. A runtime timer, or a deadline of the connection, for each of them costs a
// short call more than its handler does. Alarms are kept in the order in which they were
// set, which is that in which they ring, so that one timer does for all: it is touched
// when it fires, and when an alarm is set while it does not run.
type alarms struct {
	after  time.Duration // never changed
	start  time.Time     // of its clock; never changed
	queues []alarmQueue  // several, so that processors do not wait for one another; their number is a power of two
}

// alarmQueue is the alarms that share a timer.
type alarmQueue struct {
	of *alarms // set once, by init

	mu      sync.Mutex // guards the fields below and those of alarms that are set
	first   *alarm     // the oldest; nil without any
	last    *alarm
	timer   *time.Timer // made by the first set
	running bool        // the timer will fire

	_ [64]byte // the next queue is for another processor
}

// alarm is a place in a queue. It is part of whatever it wakes. The zero value is an alarm
// that is not set.
type alarm struct {
	queue *alarmQueue // where it was set last; written by set
	rings ringer      // nil when it is not set
	rang  bool        // it has rung since it was set

	due        time.Duration
	next, prev *alarm
}

// ringer is told when an alarm rings, under the lock of its queue: it must not wait for anything.
type ringer interface{ ring() }

const maxAlarmQueues = 64

func (as *alarms) init(after time.Duration) {
	n := min(1<<bits.Len(uint(runtime.GOMAXPROCS(0)-1)), maxAlarmQueues)
	as.after, as.start, as.queues = after, time.Now(), make([]alarmQueue, n)
	for i := range as.queues {
		as.queues[i].of = as
	}
}

// set has a ring for r when the delay has passed (A1). The alarm must not be set, and belongs to
// the caller alone.
func (as *alarms) set(a *alarm, r ringer) {
	q := &as.queues[rand.Uint32()&uint32(len(as.queues)-1)]
	due := time.Since(as.start) + as.after
	a.queue = q
	q.mu.Lock()
	defer q.mu.Unlock()
	a.rings, a.due, a.rang = r, due, false
	// Whoever read the clock first may get the lock second; the others are late by as little.
	if a.prev = q.last; a.prev != nil {
		a.prev.next = a
	} else {
		q.first = a
	}
	q.last = a
	if !q.running {
		q.running = true
		if q.timer == nil {
			q.timer = time.AfterFunc(as.after, q.fire)
		} else {
			q.timer.Reset(as.after)
		}
	}
}

// unset takes the alarm back (A2), if it is set. It reports whether it has rung instead.
func (a *alarm) unset() (rang bool) {
	q := a.queue
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.rings != nil {
		q.removeLocked(a)
	}
	return a.rang
}

func (q *alarmQueue) removeLocked(a *alarm) {
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		q.last = a.prev
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		q.first = a.next
	}
	a.next, a.prev, a.rings = nil, nil, nil
}

// fire rings what is due. It is called by the timer.
func (q *alarmQueue) fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Since(q.of.start)
	for a := q.first; a != nil && a.due <= now; a = q.first {
		r := a.rings
		q.removeLocked(a)
		a.rang = true
		r.ring()
	}
	if q.running = q.first != nil; q.running {
		q.timer.Reset(q.first.due - now)
	}
}
