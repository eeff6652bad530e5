package wire_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
	"github.com/stretchr/testify/require"
)

// busy has n goroutines compute until the test ends.
func busy(t *testing.T, n int) {
	var stop atomic.Bool
	done := make(chan struct{})
	for range n {
		go func() {
			for !stop.Load() {
			}
			done <- struct{}{}
		}()
	}
	t.Cleanup(func() {
		stop.Store(true)
		for range n {
			<-done
		}
	})
}

func TestSlownessIsThatOfABusyMachine(t *testing.T) {
	require.GreaterOrEqual(t, wire.Slowness(), 1.0)
	busy(t, 3*runtime.GOMAXPROCS(0))
	require.Eventually(t, func() bool { return wire.Slowness() > 1.5 }, time.Minute, time.Millisecond, "one of four has its turn")
	require.LessOrEqual(t, wire.Slowness(), float64(wire.MostSlowness))
	p := wire.Patience{Limit: time.Second}
	var all time.Duration
	for more := p.Next(); more > 0; more = p.Next() {
		all += more
	}
	require.Less(t, all, wire.MostSlowness*time.Second)
}

// Where the clock is the test's own, limits are what they are.
func TestAClockThatStandsStillIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.InDelta(t, 1, wire.Slowness(), 0)
		p := wire.Patience{Limit: time.Second}
		require.Zero(t, p.Next())
	})
}
