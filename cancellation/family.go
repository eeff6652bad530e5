package cancellation

import (
	"context"
	"errors"
	"time"
)

// follow makes s end when its parent does. done is the parent's Done channel.
// Only New calls it.
func (s *Source) follow(done <-chan struct{}) {
	if t := FromContext(s.parent); t != nil {
		s.up = t.source
		s.root = s.up.root
		if s.up.done() == done {
			s.up.adopt(s)
			return
		}
		// A scope of its own lies between s and up, and may even be detached from
		// up: only the scope itself can be followed.
	}
	if s.parent.Err() != nil {
		s.cancelWithParent()
		return
	}
	unfollow := context.AfterFunc(s.parent, s.cancelWithParent)
	s.root.mu.Lock()
	s.unfollow = unfollow
	s.root.mu.Unlock()
}

// cancelWithParent cancels s the way its parent, which has ended, was.
func (s *Source) cancelWithParent() {
	cause := context.Cause(s.parent)
	var fault *Error
	switch {
	case errors.As(cause, &fault):
		s.Cancel(fault.Origin, fault.Reason)
	case errors.Is(s.parent.Err(), context.DeadlineExceeded):
		s.Cancel(Timeout, cause.Error())
	default:
		s.Cancel(Parent, cause.Error())
	}
}

// adopt makes child end with s, in the same call and with the same outcome.
func (s *Source) adopt(child *Source) {
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	child.next = s.children
	if child.next != nil {
		child.next.prev = child
	}
	s.children = child
	child.linked = true
	if out := s.decided.Load(); out != nil && out != finished {
		child.decideLocked(out)
	}
	if out := s.token.ended.Load(); out != nil {
		s.endChildrenLocked(out)
	}
}

// unlinkLocked takes s, which has ended, from its parent's children.
func (s *Source) unlinkLocked() {
	if !s.linked {
		return
	}
	s.linked = false
	if s.next != nil {
		s.next.prev = s.prev
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		s.up.children = s.next
	}
	s.next, s.prev = nil, nil
}

// endChildrenLocked ends what follows s, which has ended with out. A child that
// outlives a finished parent is cancelled: its work goes on, without the request
// that it was for.
func (s *Source) endChildrenLocked(out *outcome) {
	if out == finished && s.children != nil {
		out = parentFinished()
	}
	for c := s.children; c != nil; {
		next := c.next
		c.decideLocked(out)
		c.settleLocked()
		c = next
	}
}

// parentFinished is the outcome of children whose parent was answered before them.
func parentFinished() *outcome {
	return &outcome{fault: &Error{Origin: Parent, Reason: ErrFinished.Error()}, at: time.Now()}
}
