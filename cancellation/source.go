package cancellation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Invariants. Each has a test named after it.
//
//	I1  One winner. The first accepted Cancel and Finish exclude each other:
//	    decided is set once, under the lock, and never changes.
//	I2  Done is closed exactly when Err is set, and the cause never changes.
//	    ended is set once, to decided's value; whoever reads it waits for the
//	    channel to be closed before telling.
//	I3  A hook runs at most once, after a delivered cancel only, and never
//	    because the request finished.
//	I4  No hook runs on the goroutine that cancels, and none under a lock.
//	I5  While a shield is open, nothing ends the context of its request or of
//	    those above it; the last shield out delivers, also when it panics.
//	I6  No shield opens once the request is decided, except inside an open one.
//	I7  A child follows its parent with the parent's origin and reason.
//	I8  A poll of a request that goes on is one atomic read and no allocation.
//
// Lock order. There is one lock per tree of Sources, root.mu. Under it the locks
// of package context are taken (a signal is made or fired), never the other way
// round: package context calls no code of ours while it holds one of its locks,
// except signal's methods, which take none. No code of users runs under root.mu:
// not their hooks, not their contexts' methods. Functions named ...Locked expect it.

// Source is the owner's end of a request's cancellation. Whoever runs the request
// makes one with [New], passes [Source.Context] to the work, and calls
// [Source.Finish] when the work has returned. Reasons to stop go through
// [Source.Cancel]. All methods are safe for concurrent use.
type Source struct {
	token  Token           // the worker's end; token.ended is set once, by settleLocked
	parent context.Context // set by New: values, deadline
	root   *Source         // set by New: the Source whose mu guards the tree; itself when it has no parent
	up     *Source         // set by New: the nearest Source above; nil at the root

	decided  atomic.Pointer[outcome]   // set once, by decideLocked; nil: still open
	signal   atomic.Pointer[signal]    // set once, by materialize; nil: nobody waits
	observed atomic.Pointer[time.Time] // set once, by markObserved

	mu sync.Mutex // of the root: guards the fields below of every Source in the tree

	shields   int32                         // open shields, entered here or below
	hookCount int32                         // length of hooks
	running   int32                         // hooks started that have not returned
	linked    bool                          // in up.children; set by adopt, cleared by unlinkLocked
	hooks     *hook                         // registered; taken by settleLocked
	idle      chan struct{}                 // made by Wait, closed when running falls to 0
	children  *Source                       // Sources that end when this one does; list of siblings
	next      *Source                       // sibling
	prev      *Source                       // sibling
	unfollow  func() bool                   // set by follow; detaches from a plain parent; nil after Finish
	onWait    func()                        // set by SetWaitHandler; taken by the first who waits
	onPanic   func(value any, stack []byte) // set by SetPanicHandler; nil: ask the Source above
}

// New returns the Source of a new request. It costs one allocation; a Done
// channel is made when somebody asks for it. The owner must call [Source.Finish].
//
// The request's context carries parent's values and deadline, and follows it:
//   - A parent that never ends (Done is nil, as of context.Background and of
//     context.WithoutCancel) adds no cost, and nothing is followed.
//   - When a parent carries a token and that is cancelled, so is the new request,
//     with the same origin and reason, in the same call if parent is that token's
//     own context, with or without values added.
//   - When a parent ends otherwise, the request is cancelled with [Timeout] if
//     the parent's error is context.DeadlineExceeded, else with [Parent]. The
//     reason is the text of the parent's cause.
//
// New panics if parent is nil, as package context does.
func New(parent context.Context) *Source {
	if parent == nil {
		panic("cannot create source from nil parent")
	}
	s := &Source{parent: parent}
	s.token.source = s
	s.root = s
	if done := parent.Done(); done != nil {
		s.follow(done)
	}
	return s
}

// Context returns the request's context. It ends when a cancel is delivered
// (context.Cause is then the [*Error]) or when the request finishes (the cause is
// [ErrFinished]). It always returns the same value, without allocating.
func (s *Source) Context() context.Context { return (*sourceContext)(s) }

// Token returns the worker's end. It always returns the same, non-nil value.
func (s *Source) Token() *Token { return &s.token }

// Cancel asks the request to stop. It reports whether this call decided the
// request: false means that an earlier cancel or [Source.Finish] did, and nothing
// changes, the first reason included. The reason is cut to [MaxReason] bytes of
// valid UTF-8.
//
// An accepted cancel is delivered before Cancel returns: the token is cancelled,
// Done is closed, contexts derived from the request's have ended, and hooks are
// starting, on goroutines of their own. If a [Shield] is open, the last shield to
// close delivers instead. Cancel waits for nobody.
func (s *Source) Cancel(o Origin, reason string) (accepted bool) {
	if s.decided.Load() != nil {
		return false
	}
	out := &outcome{fault: &Error{Origin: o, Reason: bounded(reason)}, at: time.Now()}
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	if !s.decideLocked(out) {
		return false
	}
	s.settleLocked()
	return true
}

// Requested returns the accepted cancel, or nil. It is non-nil from the moment
// that a Cancel was accepted, even while a shield defers delivery, so it is what
// gates the request's later messages. It is nil forever once Finish won. It costs
// one atomic read.
func (s *Source) Requested() *Error { return s.decided.Load().cancellation() }

// Finish ends the request. It returns nil if the request was not cancelled: the
// answer is owed, a later Cancel is refused, no hook will run, and the context
// ends with cause [ErrFinished]. Otherwise it returns the accepted cancel. Further
// calls return the same.
//
// The end of the context waits for open shields of goroutines that outlived the
// handler; Finish itself does not wait. See [Source.Wait] for hooks.
func (s *Source) Finish() *Error {
	s.root.mu.Lock()
	if s.decideLocked(finished) {
		s.settleLocked()
	}
	unfollow := s.unfollow
	s.unfollow = nil
	s.root.mu.Unlock()
	if unfollow != nil {
		unfollow() // may call methods of the parent, hence not under the lock
	}
	return s.decided.Load().cancellation()
}

// Times returns when the first cancel was accepted, and when the work was first
// seen to know of it; zero while that has not happened. Both carry a monotonic
// clock reading.
//
// Observed means that somebody was given a non-nil result by [Token.Err],
// [Token.Cancelled], [Checkpoint], [Shield] or the context's Err (context.Cause
// asks it), of this request or of one that follows it, or that a hook started. A
// bare receive from a Done channel leaves no trace, nor does the Err of a derived
// context: if nothing else was asked, observed stays zero, and the time at which
// the handler returned is the best upper bound that there is.
func (s *Source) Times() (requested, observed time.Time) {
	if out := s.decided.Load(); out != nil {
		requested = out.at
	}
	if at := s.observed.Load(); at != nil {
		observed = *at
	}
	return requested, observed
}

// decideLocked decides s, and what follows it, if nobody has (I1). It delivers nothing.
func (s *Source) decideLocked(out *outcome) bool {
	if s.decided.Load() != nil {
		return false
	}
	s.decided.Store(out)
	if out != finished {
		for c := s.children; c != nil; c = c.next {
			c.decideLocked(out)
		}
	}
	return true
}

// settleLocked ends the context of s if s is decided and nothing defers that. It
// is the only place where a context ends.
func (s *Source) settleLocked() {
	out := s.decided.Load()
	switch {
	case out == nil || s.token.ended.Load() != nil:
		return
	case s.shields > 0:
		return // the last shield out calls again
	case s.linked && s.up.decided.Load() == out && s.up.token.ended.Load() == nil:
		return // out is up's, and up is shielded: its end ends s as well
	}
	s.token.ended.Store(out)
	if sig := s.signal.Load(); sig != nil {
		sig.fire(out)
	}
	s.unlinkLocked()
	s.startHooksLocked(out)
	s.endChildrenLocked(out)
}

// done returns the Done channel, and makes it when there is none.
func (s *Source) done() <-chan struct{} {
	sig := s.signal.Load()
	if sig == nil {
		sig = s.materialize()
	}
	return sig.std.Done()
}

// materialize makes the signal that waiters need.
func (s *Source) materialize() *signal {
	s.root.mu.Lock()
	sig := s.signal.Load()
	if sig != nil {
		s.root.mu.Unlock()
		return sig
	}
	if out := s.token.ended.Load(); out != nil {
		sig = endedSignal(out)
	} else {
		sig = newSignal()
	}
	s.signal.Store(sig)
	first, more := s.takeWaitHandlersLocked()
	s.root.mu.Unlock()
	callWaitHandlers(first, more)
	return sig
}

// observe returns the outcome of an ended request to somebody who will see it:
// it notes the time, and waits for the instant between setting ended and closing
// Done to be over (I2). The caller has seen ended.
func (s *Source) observe() *outcome {
	out := s.token.ended.Load()
	if sig := s.signal.Load(); sig != nil {
		<-sig.std.Done()
	}
	s.markObserved(out)
	return out
}

// markObserved notes that out became known to the work of s, and so to that of
// the Sources above with which s shares it.
func (s *Source) markObserved(out *outcome) {
	if out == finished || s.observed.Load() != nil {
		return
	}
	now := time.Now()
	for p := s; p != nil; p = p.up {
		if p.decided.Load() == out {
			p.observed.CompareAndSwap(nil, &now)
		}
	}
}
