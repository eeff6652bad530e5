//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

func TestCommandRuns(t *testing.T) {
	session := host.Start(t, host.Program(t, "sh", "-c", "echo one; echo two"), host.Options{})
	call := session.Begin("run", map[string]any{})
	assert.Equal(t, "done after 2 lines", call.Text())
	session = host.Start(t, host.Program(t, "sh", "-c", "exit 3"), host.Options{})
	assert.Equal(t, "exit status 3", session.Failure("run", map[string]any{}))
}

// A cancel ends the shell and the child that it waits for. Both hold a pipe open; it ends when
// neither is there any more.
func TestCancelEndsTheWholeGroup(t *testing.T) {
	for name, script := range map[string]string{
		"polite":     `exec 3>"$0"; sleep 600 & echo started; wait`,
		"deaf child": `exec 3>"$0"; (trap "" TERM; sleep 600; sleep 600) & echo started; wait`,
		"deaf":       `exec 3>"$0"; trap "" TERM; sleep 600 & echo started; wait; sleep 600`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "held")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			ended := make(chan error, 1)
			go func() {
				held, err := os.Open(pipe) // waits for its writers
				if err == nil {
					defer held.Close()
					_, err = io.Copy(io.Discard, held)
				}
				ended <- err
			}()
			session := host.Start(t, host.Program(t, "sh", "-c", script, pipe), host.Options{})
			call := session.Begin("run", map[string]any{})
			assert.Equal(t, "started", call.Report().Message)
			select {
			case err := <-ended:
				require.FailNow(t, "the command ended by itself", "%v", err)
			default:
			}
			start := time.Now()
			call.Stop()
			require.NoError(t, host.Soon(t, ended, "shell and child are gone"))
			t.Logf("gone after %v", time.Since(start))
		})
	}
}
