//go:build unix

package stdio_test

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func blocking(t *testing.T, fd int) bool {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	require.NoError(t, err)
	return flags&unix.O_NONBLOCK == 0
}

// pipe returns the ends of a pipe that, like those of a parent, block.
func pipe(t *testing.T) (r, w int) {
	t.Helper()
	var fds [2]int
	require.NoError(t, unix.Pipe(fds[:]))
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds[0], fds[1]
}

func readAll(t *testing.T, fd int, n int) string {
	t.Helper()
	b := make([]byte, n)
	n, err := unix.Read(fd, b)
	require.NoError(t, err)
	return string(b[:n])
}

func TestModeOfDescriptorsIsPutBack(t *testing.T) {
	in, inW := pipe(t)
	outR, out := pipe(t)
	errR, stderr := pipe(t)
	std, err := stdio.OpenStandard(in, out, stderr, true)
	require.NoError(t, err)
	assert.False(t, blocking(t, in))

	_, err = unix.Write(out, []byte("stray"))
	require.NoError(t, err)
	assert.Equal(t, "stray", readAll(t, errR, 100))
	_, err = io.WriteString(std.Out, "message")
	require.NoError(t, err)
	assert.Equal(t, "message", readAll(t, outR, 100))

	read := make(chan error, 1)
	go func() { _, err := std.In.Read(make([]byte, 1)); read <- err }()
	require.NoError(t, std.In.(*os.File).SetReadDeadline(time.Unix(1, 0)), "the poller waits")
	assert.ErrorIs(t, <-read, os.ErrDeadlineExceeded)

	std.Close()
	assert.True(t, blocking(t, in))
	assert.True(t, blocking(t, out))
	assert.True(t, blocking(t, inW))
	_, err = unix.Write(out, []byte("mine again"))
	require.NoError(t, err)
	assert.Equal(t, "mine again", readAll(t, outR, 100))
}

func TestModeThatWasNonBlockingStays(t *testing.T) {
	in, _ := pipe(t)
	_, out := pipe(t)
	require.NoError(t, unix.SetNonblock(in, true))
	std, err := stdio.OpenStandard(in, out, out, false)
	require.NoError(t, err)
	std.Close()
	assert.False(t, blocking(t, in))
	assert.True(t, blocking(t, out))
}

// As of a server that is started for each connection: one socket is everything.
func TestOneSocketForEverything(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(fds[1])
	in := fds[0]
	out, err := unix.Dup(in)
	require.NoError(t, err)
	stderr, err := unix.Dup(in)
	require.NoError(t, err)
	defer func() { unix.Close(in); unix.Close(out); unix.Close(stderr) }()

	std, err := stdio.OpenStandard(in, out, stderr, true)
	require.NoError(t, err)
	for _, fd := range []int{out, stderr} {
		_, err = unix.Write(fd, []byte("stray"))
		require.NoError(t, err)
	}
	_, err = io.WriteString(std.Out, "message")
	require.NoError(t, err)
	assert.Equal(t, "message", readAll(t, fds[1], 100))
	std.Close()
	for _, fd := range []int{in, out, stderr} {
		assert.True(t, blocking(t, fd))
	}
	_, err = unix.Write(stderr, []byte("log"))
	require.NoError(t, err)
	assert.Equal(t, "log", readAll(t, fds[1], 100))
}

func TestDescriptorsWithoutAPeerStayAsTheyAre(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // a device, like a terminal
	require.NoError(t, err)
	defer null.Close()
	fd, err := unix.Dup(int(null.Fd()))
	require.NoError(t, err)
	defer unix.Close(fd)
	std, err := stdio.OpenStandard(fd, fd, int(null.Fd()), true)
	require.NoError(t, err)
	assert.True(t, blocking(t, fd))
	assert.ErrorIs(t, std.In.(*os.File).SetReadDeadline(time.Unix(1, 0)), os.ErrNoDeadline)
	std.Close()
}

func TestClosedDescriptors(t *testing.T) {
	in, _ := pipe(t)
	_, out := pipe(t)
	const closed = 1 << 19
	_, err := stdio.OpenStandard(closed, out, out, true)
	assert.ErrorIs(t, err, unix.EBADF)
	assert.ErrorContains(t, err, "stdin")
	_, err = stdio.OpenStandard(in, closed, out, true)
	assert.ErrorContains(t, err, "stdout")
	assert.True(t, blocking(t, in), "put back although it failed")
	std, err := stdio.OpenStandard(in, out, closed, true)
	require.NoError(t, err, "without standard error strays lead nowhere")
	_, err = unix.Write(out, []byte("stray"))
	require.NoError(t, err)
	std.Close()
}
