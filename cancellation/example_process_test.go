//go:build unix

package cancellation_test

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// A subprocess and what it has started are asked to end when the request is
// cancelled. The process itself is killed when it does not.
func ExampleCheckpoint_subprocess() {
	// region subprocess
	run := func(ctx context.Context, name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a process group of its own (Unix)
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
		cmd.WaitDelay = 2 * time.Second // then the process is killed, and its pipes are closed
		out, err := cmd.Output()
		if cancelled := cancellation.Checkpoint(ctx); err != nil && cancelled != nil {
			return nil, cancelled // "signal: terminated" says less
		}
		return out, err
	}
	// endregion
	source := cancellation.New(context.Background())
	timer := time.AfterFunc(50*time.Millisecond, func() { source.Cancel(cancellation.Peer, "user pressed stop") })
	defer timer.Stop()
	start := time.Now()
	_, err := run(source.Context(), "sh", "-c", "sleep 3600 & wait")
	fmt.Println(err, time.Since(start) < 5*time.Minute)
	// Output: cancelled by peer: "user pressed stop" true
}
