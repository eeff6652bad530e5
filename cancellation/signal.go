package cancellation

import (
	"context"
	"sync/atomic"
	"time"
)

// signal is what waiters wait on: a standard cancelCtx, made when somebody first
// asks for the Done channel. Because it is the standard one, contexts derived
// with package context attach to it directly, without a goroutine each, and end
// in the same call that ends it.
//
// A signal is also the parent of its own standard context. What WithCancelCause
// returns always ends a context with the error context.Canceled, but a context whose
// parent has an AfterFunc method ends with the parent's error and cause, whatever
// they are. So a time limit ends everything below it with DeadlineExceeded, as Go
// programs expect.
type signal struct {
	std   context.Context // set by the constructors; never nil
	wake  func()          // set by newSignal, through AfterFunc; ends std with s's Err and Cause
	end   context.Context // written by fire before fired; where std's error and cause come from
	fired atomic.Bool     // set once, by fire
}

// never is the Done channel of a signal in its role as a parent. It must not be
// nil, or package context would not ask for AfterFunc; it never closes, because
// wake does its work.
var never = make(chan struct{})

// newSignal returns a signal that has not fired. It runs no code but its own and
// package context's, so it may be called with the tree locked.
func newSignal() *signal {
	s := &signal{}
	std, cancel := context.WithCancelCause(s)
	_ = cancel // fire ends it
	s.std = std
	return s
}

// endedSignal returns a signal that fired with o.
func endedSignal(o *outcome) *signal {
	if o == finished {
		return &signal{std: finishedContext}
	}
	return &signal{std: o.context()}
}

// fire ends the standard context, and with it all that derive from it. It is
// called once, with the tree locked.
func (s *signal) fire(o *outcome) {
	if o == finished {
		s.end = finishedContext
	} else {
		s.end = o.context()
	}
	s.fired.Store(true)
	s.wake()
}

// AfterFunc implements the method by which package context attaches std to s.
func (s *signal) AfterFunc(wake func()) (stop func() bool) {
	s.wake = wake
	return neverStopped
}

// neverStopped needs no state: nothing but fire ends std, so nothing detaches it.
func neverStopped() bool { return false }

// Deadline implements context.Context. The deadline is sourceContext's affair.
func (s *signal) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done implements context.Context.
func (s *signal) Done() <-chan struct{} { return never }

// Err implements context.Context: what std ends with.
func (s *signal) Err() error {
	if !s.fired.Load() {
		return nil
	}
	return s.end.Err()
}

// Value implements context.Context. It has no values; it lets context.Cause
// find the cause in end.
func (s *signal) Value(key any) any {
	if !s.fired.Load() {
		return nil
	}
	return s.end.Value(key)
}
