package server

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// maxStacks bounds the dump in which handlers' stacks are looked for, in bytes. The
// process stands still while it is written.
const maxStacks = 4 << 20

// stacks are the handlers' stacks as of a moment ago. Reports of many handlers at
// once share them, as each dump stops the process.
type stacks struct {
	mu sync.Mutex        // guards the fields below; held while a dump is taken
	of map[string]string // by frame; nil: none, or too old
}

// stack returns the stack of the goroutine that runs c's handler, "" when it
// cannot be told apart from others.
//
// The Go runtime gives no goroutine's stack by name. It prints arguments,
// though, so the frame of invoke shows which call it runs; this costs the calls
// nothing, unlike labels or ids taken at their start.
func (c *Call) stack() string {
	frame := fmt.Sprintf("(*Call).invoke(%p", c)
	if work := c.beside.Load(); work != nil {
		frame = fmt.Sprintf("(*Call).invoke(%p", work)
	} else if op := c.operation.Load(); op != nil {
		frame = fmt.Sprintf("(*operation).invoke(%p", op)
	}
	s := &c.server.stacks
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = handlerStacks()
		// Who is reported has been running for the grace period, so a dump that is
		// younger shows it.
		time.AfterFunc(max(min(c.server.options.Grace, time.Second), time.Millisecond), s.forget)
	}
	return s.of[frame]
}

func (s *stacks) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of = nil
}

// invokeFrame is how the frames of Call.invoke and operation.invoke are printed.
var invokeFrame = regexp.MustCompile(`\(\*(?:Call|operation)\)\.invoke\(0x[0-9a-f]+`)

func handlerStacks() map[string]string {
	// Room for all at the first attempt, if it can be had: an attempt that
	// fails has stopped the process as well.
	buf := make([]byte, min(maxStacks, 64<<10+runtime.NumGoroutine()*4<<10))
	dump := string(buf[:runtime.Stack(buf, true)])
	of := map[string]string{}
	for one := range strings.SplitSeq(dump, "\n\n") {
		if frame := invokeFrame.FindString(one); frame != "" {
			of[frame] = strings.Clone(one)
		}
	}
	return of
}
