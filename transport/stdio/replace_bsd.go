//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package stdio

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// namedPipesHang says whether the poller misses the end of a named pipe, as
// kqueue does on Darwin (https://go.dev/issue/24164).
const namedPipesHang = runtime.GOOS == "darwin"

// replace makes fd lead to where from does.
func replace(from, fd int) error { return unix.Dup2(from, fd) }
