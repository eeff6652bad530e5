package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The server of a story that is killed does not stay behind.
func TestServerEndsWithItsStory(t *testing.T) {
	t.Parallel()
	where := filepath.Join(t.TempDir(), "board.db")
	servers := func() int {
		names, err := filepath.Glob("/proc/[0-9]*/cmdline")
		require.NoError(t, err)
		n := 0
		for _, name := range names {
			// A process may be gone by now; a dead one has no command line.
			line, _ := os.ReadFile(name)
			if strings.Contains(string(line), "serve\x00-http") && strings.Contains(string(line), where) {
				n++
			}
		}
		return n
	}
	inTime(t, func(delay time.Duration) bool {
		command := program(t, "-db", where, "-postings", "100", "-batch", "10", "-delay", delay.String())
		stdout, err := command.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, command.Start())
		require.NoError(t, readUntil(stdout, "No message means Stop here"))
		running := servers()
		require.NoError(t, command.Process.Kill())
		_ = command.Wait()
		return running == 1
	})
	ctx, cancel := context.WithTimeout(t.Context(), surely)
	defer cancel()
	for servers() > 0 {
		require.NoError(t, pause(ctx, leasePoll))
	}
}
