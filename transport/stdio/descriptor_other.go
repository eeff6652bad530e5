//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package stdio

import (
	"io"
	"os"
)

// sigPipe is empty: there is no such signal.
var sigPipe []os.Signal

// openStandard takes standard input and output as they are. The guard replaces
// os.Stdout, which is what the print functions write to.
func openStandard(_, _, _ int, guard bool) (*standard, error) {
	s := &standard{in: struct{ io.Reader }{os.Stdin}, out: struct{ io.Writer }{os.Stdout}}
	if guard {
		stdout := os.Stdout
		os.Stdout = os.Stderr
		s.restore = append(s.restore, func() { os.Stdout = stdout })
	}
	return s, nil
}
