package server

import (
	"bytes"
	"fmt"
	"runtime"
)

// maxStacks bounds the dump in which a handler's stack is looked for, in bytes.
const maxStacks = 16 << 20

// stack returns the stack of the goroutine that runs c's handler, "" when it
// cannot be told apart from others.
//
// The Go runtime gives no goroutine's stack by name. It prints arguments,
// though, so the frame of invoke shows which call it runs; this costs the calls
// nothing, unlike labels or ids taken at their start.
func (c *Call) stack() string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= maxStacks {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	frame := []byte(fmt.Sprintf("(*Call).invoke(%p", c))
	if work := c.beside.Load(); work != nil {
		frame = []byte(fmt.Sprintf("(*Call).invoke(%p", work))
	} else if op := c.operation.Load(); op != nil {
		frame = []byte(fmt.Sprintf("(*operation).invoke(%p", op))
	}
	for _, one := range bytes.Split(buf, []byte("\n\n")) {
		if bytes.Contains(one, frame) {
			return string(one)
		}
	}
	return ""
}
