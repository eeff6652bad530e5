//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package stdio

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sigPipe is what a write to a pipe without a reader raises.
var sigPipe = []os.Signal{syscall.SIGPIPE}

// openStandard takes the descriptors in and out, and with guard keeps everybody
// else away from them.
//
// It works on duplicates: closing them leaves the process's own open, and a write to a
// broken pipe, which kills the process on descriptor 1, fails.
func openStandard(in, out, stderr int, guard bool) (*standard, error) {
	s := &standard{}
	input, err := s.open(in, "stdin")
	if err != nil {
		return nil, err
	}
	s.in = input
	output, err := s.open(out, "stdout")
	if err != nil {
		s.close()
		return nil, err
	}
	s.out = output
	if guard {
		if err := s.guard(out, stderr); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// open returns a file for fd's stream that goes through the poller if it can.
func (s *standard) open(fd int, name string) (*os.File, error) {
	dup, err := duplicate(fd)
	if err == nil && isPollable(dup) {
		err = s.unblock(dup, fd)
	}
	if err != nil {
		if dup >= 0 {
			unix.Close(dup)
		}
		return nil, fmt.Errorf("stdio: %s: %w", name, err)
	}
	f := os.NewFile(uintptr(dup), name)
	s.restore = append(s.restore, func() { f.Close() })
	return f, nil
}

// unblock makes what dup and fd share non-blocking. The mode belongs to what was
// opened and not to a descriptor, so that it changes for everybody who has
// it, until it is put back.
func (s *standard) unblock(dup, fd int) error {
	flags, err := unix.FcntlInt(uintptr(dup), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		return err
	}
	s.restore = append(s.restore, func() { unix.SetNonblock(fd, false) })
	return unix.SetNonblock(dup, true)
}

// guard makes out lead to stderr.
func (s *standard) guard(out, stderr int) error {
	saved, err := duplicate(out)
	if err != nil {
		return fmt.Errorf("stdio: stdout: %w", err)
	}
	s.restore = append(s.restore, func() { unix.Close(saved) })
	strays := []int{out}
	to := stderr
	if shared := sameStream(out, stderr); shared || !isOpen(stderr) {
		nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("stdio: %w", err)
		}
		defer nowhere.Close()
		to = int(nowhere.Fd())
		if shared {
			strays = append(strays, stderr)
		}
	}
	for _, fd := range strays {
		if err := replace(to, fd); err != nil {
			return fmt.Errorf("stdio: stdout: %w", err)
		}
		s.restore = append(s.restore, func() { replace(saved, fd) })
	}
	return nil
}

// duplicate returns another descriptor, which subprocesses do not inherit.
func duplicate(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}

func isOpen(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil
}

// isPollable reports whether fd is a pipe or a socket, which have a peer and can be
// waited for.
func isPollable(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return !namedPipesHang || st.Nlink == 0
	case unix.S_IFSOCK:
		return true
	}
	return false
}

// sameStream reports whether a and b are the same pipe or socket. Two terminals, or
// two files, may be the same on purpose.
func sameStream(a, b int) bool {
	var sa, sb unix.Stat_t
	if !isPollable(a) || unix.Fstat(a, &sa) != nil || unix.Fstat(b, &sb) != nil {
		return false
	}
	return sa.Dev == sb.Dev && sa.Ino == sb.Ino
}
