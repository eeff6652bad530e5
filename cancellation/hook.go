package cancellation

import (
	"context"
	"log/slog"
	"runtime/debug"
)

// hook is one registration of Token.OnCancel. Its fields are guarded by root.mu
// until the Source ends; then its list belongs to the goroutine that starts it.
type hook struct {
	source  *Source
	f       func(*Error)
	next    *hook
	prev    *hook
	stopped bool // set by stop; never reset
}

// addHook registers f, or starts it when the cancel was delivered already.
func (s *Source) addHook(f func(*Error)) (stop func() bool) {
	h := &hook{source: s, f: f}
	s.root.mu.Lock()
	first, more := s.takeWaitHandlersLocked()
	defer callWaitHandlers(first, more) // runs after the unlock
	defer s.root.mu.Unlock()
	switch out := s.token.ended.Load(); out {
	case nil:
		if h.next = s.hooks; h.next != nil {
			h.next.prev = h
		}
		s.hooks = h
		s.hookCount++
	case finished:
		return stoppedBefore
	default:
		s.running++
		go h.start(out)
	}
	return h.stop
}

// stop takes h back. It reports whether h can never run.
func (h *hook) stop() bool {
	s := h.source
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	if h.stopped {
		return true
	}
	if out := s.token.ended.Load(); out != nil {
		return out == finished
	}
	h.stopped = true
	if h.next != nil {
		h.next.prev = h.prev
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		s.hooks = h.next
	}
	h.next, h.prev, h.f = nil, nil, nil
	s.hookCount--
	return true
}

// startHooksLocked starts the hooks of s, or drops them if s finished (I3). One
// goroutine is started here, however many hooks there are: the canceller is in
// a hurry, being the reader of a connection.
func (s *Source) startHooksLocked(out *outcome) {
	first, n := s.hooks, s.hookCount
	s.hooks, s.hookCount = nil, 0
	if first == nil || out == finished {
		return
	}
	s.running += n
	go first.start(out)
}

// start runs h, and every hook after h in its list on a goroutine of its own.
func (h *hook) start(out *outcome) {
	for next := h.next; next != nil; next = next.next {
		go next.run(out)
	}
	h.run(out)
}

func (h *hook) run(out *outcome) {
	defer h.source.hookReturned()
	defer func() {
		if value := recover(); value != nil {
			h.source.reportPanic(value, debug.Stack())
		}
	}()
	h.source.markObserved(out)
	h.f(out.fault)
}

// hookReturned counts a hook out, also one that panicked or left by runtime.Goexit.
func (s *Source) hookReturned() {
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	s.running--
	if s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Wait returns when no hook of this request runs: at once if none was started,
// else when all that were have returned, those included that start meanwhile. It
// does not wait for a cancel to happen. Called from a hook it would wait for itself.
func (s *Source) Wait() {
	for {
		s.root.mu.Lock()
		if s.running == 0 {
			s.root.mu.Unlock()
			return
		}
		if s.idle == nil {
			s.idle = make(chan struct{})
		}
		idle := s.idle
		s.root.mu.Unlock()
		<-idle
	}
}

// SetPanicHandler sets what is called, on the hook's goroutine, when a hook of
// this request panics, with the panic's value and the stack. Requests that have
// none use that of the nearest request above; without any, or with nil, the panic
// is logged with slog.Error. Call it before the request's context is given away.
func (s *Source) SetPanicHandler(f func(value any, stack []byte)) {
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	s.onPanic = f
}

// reportPanic tells the owner of a hook's panic. A handler that panics itself is
// logged: a hook must not end the process.
func (s *Source) reportPanic(value any, stack []byte) {
	var handler func(any, []byte)
	s.root.mu.Lock()
	for p := s; p != nil && handler == nil; p = p.up {
		handler = p.onPanic
	}
	s.root.mu.Unlock()
	if handler == nil {
		logPanic(value, stack)
		return
	}
	defer func() {
		if second := recover(); second != nil {
			logPanic(second, debug.Stack())
		}
	}()
	handler(value, stack)
}

func logPanic(value any, stack []byte) {
	slog.LogAttrs(context.Background(), slog.LevelError, "cancellation hook panicked",
		slog.Any("panic", value), slog.String("stack", string(stack)))
}
