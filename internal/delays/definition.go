package main

// definition is the file that a package with delays gets. It reads the system's clock and sleeps by the
// system's call, since those of package time are not real in a bubble. The delays of a package's
// goroutines take less than half of the time, those of other functions less than a fifth, so that
// a run takes no more than a few times as long.
const definition = `package %s

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// longestDelay_ is in microseconds; 0: no delays.
var longestDelay_ = func() uint32 { n, _ := strconv.ParseUint(os.Getenv("HEED_DELAY"), 10, 31); return uint32(n) }()

// nextDelay_ is when there may be the next, in microseconds of the system's clock.
var nextDelay_ atomic.Int64

func delay_(oneIn uint32) {
	if longestDelay_ == 0 || rand.Uint32N(oneIn) != 0 {
		return
	}
	var tv syscall.Timeval
	if syscall.Gettimeofday(&tv) != nil {
		return
	}
	now := tv.Nano() / 1000
	if now < nextDelay_.Load() {
		return
	}
	d := int64(1 + rand.Uint32N(longestDelay_))
	pause := d
	if oneIn > 100 {
		pause = 4 * d
	}
	nextDelay_.Store(now + d + pause)
	ts := syscall.NsecToTimespec(d * 1000)
	_ = syscall.Nanosleep(&ts, nil)
}
`
