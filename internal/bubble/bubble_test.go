package bubble_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/require"
)

// hangs names the variable that has TestAHang hang, in a process of its own.
const hangs = "BUBBLE_TEST_HANGS"

// again sets a timer again and again, as one for keep-alive messages does.
func again(every time.Duration) (stop func()) {
	var timer *time.Timer
	timer = time.AfterFunc(1<<62, func() { timer.Reset(every) })
	timer.Reset(every)
	return func() { timer.Stop() }
}

func TestAHang(t *testing.T) {
	switch os.Getenv(hangs) {
	case "test":
		bubble.Test(t, func(t *testing.T) {
			defer again(15 * time.Second)()
			<-make(chan struct{})
		})
	case "cleanup":
		bubble.Test(t, func(t *testing.T) {
			t.Cleanup(again(15 * time.Second))
			t.Cleanup(func() { <-make(chan struct{}) })
		})
	}
}

func TestAHangFails(t *testing.T) {
	for _, where := range []string{"test", "cleanup"} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAHang$", "-test.timeout=1m")
		c.Env = append(os.Environ(), hangs+"="+where)
		out, err := c.CombinedOutput()
		require.Error(t, err, where)
		require.Contains(t, string(out), "TestAHang: 30h0m0s have passed in the bubble", where)
		require.Contains(t, string(out), "bubble_test.TestAHang.func", "where it hangs")
	}
}

// What ends in time is a test like any other, and leaves no timer behind.
func TestTimePasses(t *testing.T) {
	begun := time.Now()
	bubble.Test(t, func(t *testing.T) { time.Sleep(bubble.Lifetime - 1) })
	bubble.TestFor(t, 1000*time.Hour, func(t *testing.T) { time.Sleep(999 * time.Hour) })
	require.Less(t, time.Since(begun), time.Minute)
}
