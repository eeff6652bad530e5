package stdio_test

import (
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStalledPeerIsGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		g := newGate()
		o := stdio.NewOutbox(g, 1<<20, timeout)
		begun := time.Now()
		require.NoError(t, o.Put("x"))
		<-o.Failed()
		assert.Equal(t, stdio.ErrStalled, o.Err())
		took := time.Since(begun)
		assert.GreaterOrEqual(t, took, timeout)
		assert.LessOrEqual(t, took, timeout+timeout/4)
		assert.True(t, o.Finish(time.Hour))
	})
}

func TestSlowPeerIsNotGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const timeout = time.Minute
		g := newGate()
		o := stdio.NewOutbox(g, 10*stdio.MaxWrite, timeout)
		require.NoError(t, o.Put(strings.Repeat("x", 8*stdio.MaxWrite)))
		for range 9 {
			time.Sleep(timeout - time.Second)
			g.let <- stdio.MaxWrite
		}
		require.True(t, o.AwaitIdle(time.Second))
		assert.NoError(t, o.Err())
		for range 5 { // neither is one with little to read
			time.Sleep(timeout - time.Second)
			require.NoError(t, o.Put("y"))
			g.let <- 2
		}
		time.Sleep(10 * timeout)
		assert.NoError(t, o.Err(), "silence is no stall")
		assert.True(t, o.Finish(time.Hour))
	})
}

func TestWithoutATimeoutPeersMayTakeForever(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		o := stdio.NewOutbox(g, 100, 0)
		require.NoError(t, o.Put("x"))
		time.Sleep(bubble.Lifetime - 2*time.Hour)
		g.let <- 2
		assert.True(t, o.Finish(time.Hour))
		assert.Equal(t, "x\n", g.text())
	})
}
