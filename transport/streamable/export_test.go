package streamable

import "time"

// Alarms and Alarm are what tests of alarm.go need of it.
type (
	Alarms = alarms
	Alarm  = alarm
)

// RingFunc is a function as a ringer.
type RingFunc func()

func (f RingFunc) ring() { f() }

// NewAlarms returns alarms that ring after d.
func NewAlarms(d time.Duration) *Alarms {
	as := &alarms{}
	as.init(d)
	return as
}

// Set is set.
func (as *alarms) Set(a *Alarm, f func()) { as.set(a, RingFunc(f)) }

// Unset is unset.
func (a *alarm) Unset() bool { return a.unset() }

// Left counts the alarms that are set.
func (as *alarms) Left() int {
	n := 0
	for i := range as.queues {
		q := &as.queues[i]
		q.mu.Lock()
		for a := q.first; a != nil; a = a.next {
			n++
		}
		q.mu.Unlock()
	}
	return n
}
