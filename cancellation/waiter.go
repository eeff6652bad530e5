package cancellation

// SetWaitHandler sets what is called, once, when somebody begins to wait for the
// cancellation instead of looking at it: asks for Done, of this request or of one
// that follows it, registers a hook, or opens a [Shield]. Owners for whom it costs something to
// notice that they should cancel, such as a watched connection, can put that off
// until then. f runs on the goroutine that begins to wait, before it does; it must
// be quick and may call [Source.Cancel]. Call it before the request's context is
// given away.
func (s *Source) SetWaitHandler(f func()) {
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	s.onWait = f
}

// takeWaitHandlersLocked returns the handlers of s and the Sources above that have
// not been called. The caller calls them without the lock.
func (s *Source) takeWaitHandlersLocked() (first func(), more []func()) {
	for p := s; p != nil; p = p.up {
		switch f := p.onWait; {
		case f == nil:
		case first == nil:
			first = f
		default:
			more = append(more, f)
		}
		p.onWait = nil
	}
	return first, more
}

func callWaitHandlers(first func(), more []func()) {
	if first == nil {
		return
	}
	first()
	for _, f := range more {
		f()
	}
}
