package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A wrongClock is right until it jumps.
type wrongClock struct{ by atomic.Int64 }

func (c *wrongClock) jump(by time.Duration) { c.by.Add(int64(by)) }
func (c *wrongClock) now() time.Time        { return time.Now().Add(time.Duration(c.by.Load())) }

// seenBy is the database as a server sees it that goes by another clock.
func (db *database) seenBy(c *wrongClock, lease time.Duration) *database {
	seen := *db
	seen.now, seen.lease = c.now, lease
	return &seen
}

// The clock of a server jumps in the middle of its job, by much more than a lease. Nobody else
// is there, so that it goes on as if nothing had happened.
func TestClockJumpsInTheMiddleOfAJob(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		for _, by := range []time.Duration{time.Hour, -time.Hour} {
			fillTest(t, db, 60)
			var clock wrongClock
			j := testJob(db.seenBy(&clock, time.Minute), 10)
			j.report = func(_ context.Context, done float64, _ int, phase string) error {
				if phase == phaseClosed && done == 20 || phase == phaseCommitting && done > 40 && done < 50 {
					clock.jump(by)
				}
				return nil
			}
			status, err := j.run(t.Context())
			require.NoError(t, err)
			require.Equal(t, stateCompleted, status.State)
			require.Equal(t, 1, status.Runs)
			requireAudit(t, db, true)
		}
	})
}

// Of two servers one's clock jumps ahead. To it the other one's lease is over: it takes the operation
// over, and the other one writes nothing from then on.
func TestClockJumpsAheadOfALease(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 60)
		var clock wrongClock
		other := db.seenBy(&clock, db.lease)
		j := testJob(db, 10)
		j.report = func(ctx context.Context, done float64, _ int, phase string) error {
			if phase == phaseClosed && done == 20 {
				clock.jump(2 * db.lease)
				status, err := testJob(other, 10).run(ctx)
				require.NoError(t, err)
				require.Equal(t, 2, status.Runs)
			}
			return nil
		}
		_, err := j.run(t.Context())
		require.ErrorIs(t, err, errTakeover)
		requireAudit(t, db, true)
	})
}

// A server dies, and the clock is set back: nobody waits for the lease until the clock has caught up.
func TestClockIsSetBackBehindALease(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 60)
		_, err := db.acquire(t.Context(), "op", staleDays) // and never gives it back
		require.NoError(t, err)
		var clock wrongClock
		other := db.seenBy(&clock, db.lease)
		status, err := other.status(t.Context(), "op")
		require.NoError(t, err)
		require.Equal(t, stateRunning, status.State)

		clock.jump(-2 * db.lease)
		status, err = other.status(t.Context(), "op")
		require.NoError(t, err)
		require.Equal(t, stateStopped, status.State)
		status, err = testJob(other, 10).run(t.Context())
		require.NoError(t, err)
		require.Equal(t, stateCompleted, status.State)
		require.Equal(t, 2, status.Runs)
		requireAudit(t, db, true)
	})
}

// What delays this process is measured; what is late by less than that proves nothing.
func TestPulseKnowsHowLateItIs(t *testing.T) {
	t.Parallel()
	p := newPulse()
	defer p.close()
	await(t, func() bool { return p.lateness() > 0 })
	require.Zero(t, (*pulse)(nil).lateness())

	tap := newTap(closed)
	known := &pulse{}
	tap.pulse = known
	hear(t, tap, true, relayedCall)
	tap.add(line{sent: true, method: closed, id: "5"})
	hear(t, tap, false, relayedProgress)
	stop := &Stop{Requested: time.Now().Add(-time.Second)}
	known.worst.Store(int64(time.Hour))
	require.Equal(t, 1, tap.silence("call-1", stop).crossed)
	known.worst.Store(int64(time.Millisecond))
	require.Equal(t, 1, tap.silence("call-1", stop).after)
}
