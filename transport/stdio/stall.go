package stdio

import (
	"sync"
	"time"
)

// stall finds a write that takes too long. It looks four times in the time-out
// as long as there is something to write, so that a write costs no timer of its
// own. A nil *stall finds nothing.
type stall struct {
	interval time.Duration
	found    func() // called once, on a goroutine of its own

	mu     sync.Mutex // guards the fields below; taken last
	busy   bool       // there is something to write
	writes uint64     // that have ended
	seen   uint64     // writes when look was there last
	still  int        // how often it has seen the same
	armed  bool       // timer will call look
	timer  *time.Timer
}

// looks is how often a stalled write must be seen.
const looks = 4

func newStall(timeout time.Duration, found func()) *stall {
	return &stall{interval: max(timeout/looks, 1), found: found}
}

// begin notes that there is something to write.
func (s *stall) begin() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = true
	s.writes++ // the time before does not count
	if s.armed {
		return
	}
	s.armed, s.seen, s.still = true, s.writes, 0
	if s.timer == nil {
		s.timer = time.AfterFunc(s.interval, s.look)
		return
	}
	s.timer.Reset(s.interval)
}

// progress notes that a write has ended.
func (s *stall) progress() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.writes++
	s.mu.Unlock()
}

// end notes that nothing is left to write. The timer is not stopped, since more is
// likely to come: it finds nothing to do.
func (s *stall) end() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
}

func (s *stall) look() {
	s.mu.Lock()
	switch {
	case !s.busy:
		s.armed = false
		s.mu.Unlock()
		return
	case s.writes != s.seen:
		s.seen, s.still = s.writes, 0
	default:
		s.still++
	}
	if s.still < looks {
		s.timer.Reset(s.interval)
		s.mu.Unlock()
		return
	}
	s.armed = false
	s.mu.Unlock()
	s.found()
}
