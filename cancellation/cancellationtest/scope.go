package cancellationtest

import (
	"context"
	"fmt"
	"testing"
)

// scope is the testing.TB of one run: failures name the run, and clean-ups are done
// at its end instead of the test's. Subtests would do the same but cannot be started
// in a testing/synctest bubble.
type scope struct {
	testing.TB
	name     fmt.Stringer
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func()
}

func newScope(t testing.TB, name fmt.Stringer) *scope {
	s := &scope{TB: t, name: name}
	s.ctx, s.cancel = context.WithCancel(t.Context())
	return s
}

// close ends the scope's context, then does the clean-ups, last in first out, the
// rest of them also if one panics or calls FailNow.
func (s *scope) close() {
	s.cancel()
	for len(s.cleanups) > 0 {
		last := s.cleanups[len(s.cleanups)-1]
		s.cleanups = s.cleanups[:len(s.cleanups)-1]
		defer s.close()
		last()
		return
	}
}

func (s *scope) Cleanup(f func())         { s.cleanups = append(s.cleanups, f) }
func (s *scope) Context() context.Context { return s.ctx }

func (s *scope) Error(args ...any) {
	s.Helper()
	s.TB.Errorf("%v: %s", s.name, fmt.Sprintln(args...))
}

func (s *scope) Errorf(format string, args ...any) {
	s.Helper()
	s.TB.Errorf("%v: %s", s.name, fmt.Sprintf(format, args...))
}

func (s *scope) Fatal(args ...any) {
	s.Helper()
	s.TB.Fatalf("%v: %s", s.name, fmt.Sprintln(args...))
}

func (s *scope) Fatalf(format string, args ...any) {
	s.Helper()
	s.TB.Fatalf("%v: %s", s.name, fmt.Sprintf(format, args...))
}
