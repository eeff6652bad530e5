package cancellationtest

import (
	"bytes"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Goroutines inherit the profiler labels of the one that starts them. A label per
// run therefore marks exactly the goroutines of that run. Comparing all goroutines
// before and after, the usual way, would accuse those of parallel tests.
const labelKey = "cancellationtest.run"

// leakPatience is how long goroutines may take to end after their run.
const leakPatience = time.Second

var labels atomic.Int64

func newLabel() string { return strconv.FormatInt(labels.Add(1), 10) }

// leaked returns the stacks of the goroutines with that label which do not go away,
// or "".
func leaked(label string) string {
	pause := 50 * time.Microsecond
	for waited := time.Duration(0); ; waited += pause {
		left := goroutines(label)
		if left == "" || waited >= leakPatience {
			return left
		}
		pause = min(2*pause, 50*time.Millisecond)
		time.Sleep(pause)
	}
}

// goroutines returns the stacks of the goroutines with that label, or "".
func goroutines(label string) string {
	var profile bytes.Buffer
	// A bytes.Buffer refuses nothing, and debug 1 is the format that shows labels.
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	mark := strconv.Quote(labelKey) + ":" + strconv.Quote(label)
	var found []string
	for block := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(block, mark) {
			found = append(found, block)
		}
	}
	return strings.Join(found, "\n\n")
}
