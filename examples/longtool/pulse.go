package main

import (
	"sync/atomic"
	"time"
)

// pulseEvery is short, so that hardly a delay falls between two beats.
const pulseEvery = 5 * time.Millisecond

// A pulse finds out how late this machine does what is due. Without it a message that a busy
// machine delayed would look like one that was sent too late.
type pulse struct {
	worst atomic.Int64 // nanoseconds
	ended chan struct{}
	gone  chan struct{}
}

func newPulse() *pulse {
	p := &pulse{ended: make(chan struct{}), gone: make(chan struct{})}
	go p.beat()
	return p
}

func (p *pulse) beat() {
	defer close(p.gone)
	timer := time.NewTimer(pulseEvery)
	defer timer.Stop()
	for {
		due := time.Now().Add(pulseEvery)
		timer.Reset(pulseEvery)
		select {
		case <-timer.C:
		case <-p.ended:
			return
		}
		if late := int64(time.Since(due)); late > p.worst.Load() { // nobody else writes
			p.worst.Store(late)
		}
	}
}

// lateness is the longest delay so far. A nil pulse knows of none.
func (p *pulse) lateness() time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.worst.Load())
}

func (p *pulse) close() {
	close(p.ended)
	<-p.gone
}
