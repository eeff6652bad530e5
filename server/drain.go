package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// Drain shuts the server down: from now on requests are refused, those that are
// running get [Options.DrainGrace] to end by themselves, then they are cancelled
// with origin Shutdown. It returns nil once no handler runs any more.
//
// When ctx ends first, what is still owed is answered with an error, and Drain
// returns a [*DrainError] that lists the handlers that are left. A second Drain waits as
// the first one does.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	grace, cancel := context.WithTimeout(ctx, max(s.options.DrainGrace, 0))
	defer cancel()
	sessions := s.openSessions()
	for _, ss := range sessions {
		ss.endWaiting(drainReason)
	}
	if s.options.DrainGrace <= 0 || waitAll(grace, sessions) != nil {
		for _, ss := range sessions {
			ss.CancelAll(cancellation.Shutdown, drainReason)
		}
		if waitAll(ctx, sessions) != nil {
			return s.abandon(sessions)
		}
	}
	return nil
}

// Draining reports whether Drain was called.
func (s *Server) Draining() bool { return s.draining.Load() }

// Drain is the server's Drain for one session: requests are refused, those that
// are running get grace, are cancelled, and have until ctx ends to return.
func (ss *Session) Drain(ctx context.Context, grace time.Duration, reason string) error {
	ss.mu.Lock()
	ss.draining = true
	ss.mu.Unlock()
	ss.endWaiting(reason)
	if grace > 0 {
		wait, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if ss.Wait(wait) == nil {
			return nil
		}
	}
	ss.CancelAll(cancellation.Shutdown, reason)
	if ss.Wait(ctx) != nil {
		return ss.server.abandon([]*Session{ss})
	}
	return nil
}

const drainReason = "the server is shutting down"

// endWaiting ends what would wait for ever, since no further request is served:
// handlers that are parked, and subscriptions.
func (ss *Session) endWaiting(reason string) {
	ss.endOperations(cancellation.Shutdown, reason)
	for _, c := range ss.snapshot() {
		if c.method.endless {
			c.cancel(cancellation.Shutdown, reason)
		}
	}
}

// lastWords is how long a shutdown waits for the answers that it gives for handlers.
// A client that does not read must not hold it up.
const lastWords = 100 * time.Millisecond

// abandon answers for the handlers that have not returned and lists them.
func (s *Server) abandon(sessions []*Session) error {
	left := &DrainError{}
	var answers sync.WaitGroup
	for _, ss := range sessions {
		for _, c := range ss.snapshot() {
			if cancelled := c.source.Requested(); cancelled != nil && cancelled.Origin.AnswerOwed() && c.detached == nil {
				answers.Go(func() { c.answer(nil, cancelled) })
			}
			left.Left = append(left.Left, c.describe())
		}
		left.Left = append(left.Left, ss.unattended()...)
	}
	if len(left.Left) == 0 {
		return nil
	}
	told := make(chan struct{})
	go func() {
		answers.Wait()
		close(told)
	}()
	enough := time.NewTimer(lastWords)
	defer enough.Stop()
	select {
	case <-told:
	case <-enough.C:
	}
	return left
}

func (s *Server) openSessions() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Session, 0, len(s.sessions))
	for ss := range s.sessions {
		all = append(all, ss)
	}
	return all
}

func waitAll(ctx context.Context, sessions []*Session) error {
	for _, ss := range sessions {
		if err := ss.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ErrHandlersLeft matches, through errors.Is, every *DrainError.
var ErrHandlersLeft = errors.New("server: handlers are still running")

// DrainError is returned when handlers were still running at the end of a shutdown.
type DrainError struct {
	// Left describes the requests whose handlers have not returned.
	Left []InFlight
}

func (e *DrainError) Error() string {
	const shown = 5
	var names []string
	for i, f := range e.Left {
		if i == shown {
			names = append(names, "…")
			break
		}
		name := f.Method
		if f.Name != "" {
			name += " " + bounded(f.Name)
		}
		names = append(names, fmt.Sprintf("%s (id %s)", name, bounded(f.ID)))
	}
	return fmt.Sprintf("%v: %d: %s", ErrHandlersLeft, len(e.Left), strings.Join(names, ", "))
}

// Is makes errors.Is match ErrHandlersLeft.
func (e *DrainError) Is(target error) bool { return target == ErrHandlersLeft }
