package bubble

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Lifetime is how long a test may last, in its bubble's time. Every limit and interval that
// a server has by default fits into it.
const Lifetime = 30 * time.Hour

// maxStacks bounds what is printed of the goroutines' stacks, in bytes.
const maxStacks = 1 << 20

// Test runs test in a new bubble, as synctest.Test does, and fails when it lasts longer than
// Lifetime.
func Test(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	TestFor(t, Lifetime, test)
}

// TestFor is Test for tests that let another time pass.
func TestFor(t *testing.T, lifetime time.Duration, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		end := time.AfterFunc(lifetime, func() {
			// The test's own goroutine waits for something: only a panic gets it out of there.
			buf := make([]byte, maxStacks)
			fmt.Fprintf(os.Stderr, "%s\n", buf[:runtime.Stack(buf, true)])
			panic(fmt.Sprintf("%s: %v have passed in the bubble: what the test waits for never comes", t.Name(), lifetime))
		})
		t.Cleanup(func() { end.Stop() }) // the last one to run, so that other cleanups cannot hang either
		test(t)
	})
}
