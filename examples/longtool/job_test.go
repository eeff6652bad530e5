package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/cancellation/cancellationtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// silent reports to nobody, and is a checkpoint as a real report is.
func silent(ctx context.Context, _ float64, _ int, _ string) error {
	return cancellation.Checkpoint(ctx)
}

func testJob(db *database, batch int) *job {
	return &job{db: db, operation: "op", staleDays: staleDays, batch: batch, report: silent}
}

func TestJobClosesAndNotifiesOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 60)
		var phases []string
		j := testJob(db, 25)
		j.report = func(_ context.Context, done float64, total int, phase string) error {
			assert.Equal(t, 60, total)
			if phase == phaseClosed {
				phase += map[float64]string{25: " 25", 50: " 50", 60: " 60"}[done]
			}
			phases = append(phases, phase)
			return nil
		}
		status, err := j.run(t.Context())
		require.NoError(t, err)
		board, err := db.size(t.Context())
		require.NoError(t, err)
		require.Equal(t, size{stale: 60, fresh: 15, applicants: board.applicants}, board)
		require.Equal(t, "committing,closed 25,committing,closed 50,committing,closed 60", strings.Join(phases, ","))

		notified, err := db.count(t.Context(), `select count(*) from notifications`)
		require.NoError(t, err)
		require.Equal(t, &Status{
			OperationID: "op", State: stateCompleted, Runs: 1, Total: 60,
			Batches: 3, Closed: 60, Notices: notified, Notified: notified,
		}, status)
		requireAudit(t, db, true)
	})
}

func TestCompletedOperationIsNotRepeated(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 30)
		first, err := testJob(db, 7).run(t.Context())
		require.NoError(t, err)
		// Another stale posting turns up; the old operation has nothing to do with it.
		_, err = db.ExecContext(t.Context(), `insert into postings (id, title, age_days) values (1000, 'Late', 500)`)
		require.NoError(t, err)
		again, err := testJob(db, 7).run(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, again)
		requireAudit(t, db, false)

		j := testJob(db, 7)
		j.operation = "next"
		next, err := j.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, next.Closed)
	})
}

func TestOperationIDBelongsToItsArguments(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 10)
		_, err := testJob(db, 7).run(t.Context())
		require.NoError(t, err)
		j := testJob(db, 7)
		j.staleDays = 200
		_, err = j.run(t.Context())
		require.ErrorIs(t, err, errMismatch)
		requireAudit(t, db, true)
	})
}

// awaitStatement waits until the job's slow statement runs.
func awaitStatement(t *testing.T, db *database) {
	t.Helper()
	awaitState(t, db, "op", stateRunning)
	if db.dialect == "PostgreSQL" {
		await(t, func() bool {
			n, err := db.count(t.Context(), sleepingBackends)
			require.NoError(t, err)
			return n > 0
		})
		return
	}
	// SQLite does not tell. Its write lock is taken by the batch that holds the statement, and
	// for a moment by the lease: whoever finds it taken for a second has found the batch.
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.ExecContext(t.Context(), "pragma busy_timeout = 1000")
	require.NoError(t, err)
	await(t, func() bool {
		_, err := c.ExecContext(t.Context(), "begin immediate")
		if err == nil {
			_, err := c.ExecContext(t.Context(), "rollback")
			require.NoError(t, err)
			return false
		}
		require.True(t, isLocked(err), "%v", err)
		return true
	})
	_, err = c.ExecContext(t.Context(), fmt.Sprintf("pragma busy_timeout = %d", lockWait.Milliseconds()))
	require.NoError(t, err)
}

// The statement would take two minutes. A cancel interrupts it, and nothing of
// the batch is left.
func TestCancelInterruptsTheStatement(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 100)
		source := cancellation.New(t.Context())
		defer source.Finish()
		j := testJob(db, 100)
		j.delay = 160 * time.Second
		ended := make(chan error, 1)
		go func() {
			_, err := j.run(source.Context())
			ended <- err
		}()
		awaitStatement(t, db)
		stopped := time.Now()
		source.Cancel(cancellation.Peer, "user pressed stop")
		requireStopped(t, <-ended)
		require.Less(t, time.Since(stopped), time.Minute, "the statement was interrupted")
		status, err := db.status(t.Context(), "op")
		require.NoError(t, err)
		require.Equal(t, &Status{OperationID: "op", State: stateStopped, Runs: 1, Total: 100}, status)
		requireAudit(t, db, false)
	})
}

// A cancel that comes during the commit waits for it: the caller is told that
// its call was cancelled, and the batch is whole and in the ledger.
func TestCase48_LateCancelFindsTheBatchInTheLedger(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 60)
		source := cancellation.New(t.Context())
		defer source.Finish()
		j := testJob(db, 25)
		var cancelled time.Time
		j.report = func(ctx context.Context, done float64, total int, phase string) error {
			if phase == phaseCommitting && done > 25 {
				cancelled = time.Now()
				assert.True(t, source.Cancel(cancellation.Peer, "user pressed stop"))
			}
			return cancellation.Checkpoint(ctx)
		}
		_, err := j.run(source.Context())
		requireStopped(t, err)

		status, err := db.status(t.Context(), "op")
		require.NoError(t, err)
		require.Equal(t, stateStopped, status.State)
		require.Equal(t, 2, status.Batches)
		require.Equal(t, 50, status.Closed)
		require.Less(t, status.Notified, status.Notices, "its notices wait in the outbox")
		entries, err := db.entries(t.Context(), "op")
		require.NoError(t, err)
		require.False(t, entries[1].committed.Before(cancelled.Truncate(time.Microsecond)))
		requireAudit(t, db, false)

		_, err = testJob(db, 25).run(t.Context())
		require.NoError(t, err)
		requireAudit(t, db, true)
	})
}

// Stopped at every point where it can notice, the job leaves a whole database,
// and a retry completes it.
func TestJobStoppedAtEveryCheckpoint(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		runs := 0
		cancellationtest.Every(t, func(t testing.TB) cancellationtest.Run {
			runs++
			require.NoError(t, db.fill(t.Context(), 7, func(int, int) {}))
			return cancellationtest.Run{
				Reason: "user pressed stop",
				Handler: func(ctx context.Context) error {
					_, err := testJob(db, 3).run(ctx)
					return err
				},
				Check: func(t testing.TB, o cancellationtest.Outcome) {
					requireAudit(t, db, o.Err == nil)
					if o.Err != nil {
						requireStopped(t, o.Err)
					}
					_, err := testJob(db, 3).run(t.Context())
					require.NoError(t, err)
					requireAudit(t, db, true)
				},
			}
		})
		require.Greater(t, runs, 20, "there are many checkpoints")
	})
}

// Dozens of jobs, each stopped at a random moment and then retried.
func TestJobStoppedAtRandomTimes(t *testing.T) {
	onEachPlace(t, func(t *testing.T, where string) {
		var mu sync.Mutex
		stopped := map[int]int{} // by the batches that were committed then
		t.Run("all", func(t *testing.T) {
			for part := range 4 { // each on a board of its own
				t.Run(strconv.Itoa(part), func(t *testing.T) {
					t.Parallel()
					place := where + "." + strconv.Itoa(part)
					if isPostgres(where) {
						place = newPostgres(t)
					}
					for batches, n := range stopAtRandom(t, openTest(t, place), 12) {
						mu.Lock()
						stopped[batches] += n
						mu.Unlock()
					}
				})
			}
		})
		t.Logf("stopped after so many batches, so often: %v", stopped)
		require.Greater(t, len(stopped), 2, "jobs were stopped in different places")
	})
}

// stopAtRandom stops that many jobs, and says how many of them after how many
// batches.
func stopAtRandom(t *testing.T, db *database, jobs int) map[int]int {
	const postings = 9
	slowly := testJob(db, 3)
	slowly.delay = 2 * time.Millisecond
	// What a job takes. One that is through tells; one that was stopped says that it may be
	// more by now, when other programs want the machine.
	whole := time.Second
	stopped := map[int]int{}
	for tries := 0; jobs > 0; tries++ {
		require.Less(t, tries, 1000, "jobs are faster than any Stop")
		fillTest(t, db, postings)
		source := cancellation.New(t.Context())
		start := time.Now()
		timer := time.AfterFunc(rand.N(whole), func() {
			source.Cancel(cancellation.Peer, "user pressed stop")
		})
		_, err := slowly.run(source.Context())
		timer.Stop()
		source.Finish()
		requireAudit(t, db, err == nil)
		if err == nil { // it was through before
			whole = min(whole, time.Since(start))
			continue
		}
		whole += whole / 20
		jobs--
		requireStopped(t, err)
		batches, err := db.count(t.Context(), `select count(*) from ledger`)
		require.NoError(t, err)
		stopped[batches]++
		_, err = slowly.run(t.Context())
		require.NoError(t, err)
		requireAudit(t, db, true)
	}
	return stopped
}

// Two calls with one operation id never work at once: the second waits, and
// finds the work done.
func TestSameOperationAtOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 60)
		var working sync.Mutex
		run := func() error {
			j := testJob(db, 10)
			j.report = func(ctx context.Context, _ float64, _ int, phase string) error {
				if phase == phaseCommitting {
					if !working.TryLock() {
						return errors.New("two at once")
					}
				} else {
					working.Unlock()
				}
				return nil
			}
			for {
				_, err := j.run(t.Context())
				if !errors.Is(err, errBusy) { // it has waited for long, and asks again
					return err
				}
			}
		}
		errs := make(chan error)
		for range 4 {
			go func() { errs <- run() }()
		}
		for range 4 {
			require.NoError(t, <-errs)
		}
		status, err := db.status(t.Context(), "op")
		require.NoError(t, err)
		require.Equal(t, 1, status.Runs)
		requireAudit(t, db, true)
	})
}

// Different operations share the board and close each posting once.
func TestDifferentOperationsAtOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 90)
		errs := make(chan error)
		for _, operation := range []string{"one", "two", "three"} {
			go func() {
				j := testJob(db, 4)
				j.operation = operation
				_, err := j.run(t.Context())
				errs <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-errs)
		}
		requireAudit(t, db, true)
	})
}

// When the holder's lease ran out, because its process was frozen, say, another
// call takes over, and the first cannot write any more.
func TestTakeoverEndsTheFirst(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 60)
		frozen := testJob(db, 10)
		frozen.report = func(ctx context.Context, done float64, _ int, phase string) error {
			if phase == phaseClosed && done == 20 {
				_, err := db.ExecContext(ctx, `update operations set lease_until = 1`)
				require.NoError(t, err)
				_, err = testJob(db, 10).run(ctx)
				require.NoError(t, err)
			}
			return nil
		}
		_, err := frozen.run(t.Context())
		require.ErrorIs(t, err, errTakeover)
		requireAudit(t, db, true)
	})
}

// A call that waits for another one's lease can be cancelled.
func TestWaitForTheLeaseIsCancelled(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 10)
		held, err := db.acquire(t.Context(), "op", staleDays)
		require.NoError(t, err)
		source := cancellation.New(t.Context())
		defer source.Finish()
		waiting := *db
		asked := 0 // for the time, which each try does
		waiting.now = func() time.Time {
			if asked++; asked > 10 {
				source.Cancel(cancellation.Peer, "user pressed stop")
			}
			return db.now()
		}
		_, err = testJob(&waiting, 10).run(source.Context())
		requireStopped(t, err)

		status, err := db.settled(t.Context(), "op", 0)
		require.NoError(t, err)
		require.Equal(t, stateRunning, status.State)
		time.AfterFunc(50*time.Millisecond, func() { held.release(t.Context()) })
		status, err = db.settled(t.Context(), "op", surely)
		require.NoError(t, err)
		require.Equal(t, stateStopped, status.State)
	})
}

func TestStatusOfAnUnknownOperation(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		status, err := db.settled(t.Context(), "nothing", time.Minute)
		require.NoError(t, err)
		require.Equal(t, &Status{OperationID: "nothing", State: stateUnknown}, status)
	})
}

// requireStopped checks that err says who stopped the job, and why.
func requireStopped(t testing.TB, err error) {
	t.Helper()
	var cancelled *cancellation.Error
	require.ErrorAs(t, err, &cancelled)
	require.Equal(t, cancellation.Error{Origin: cancellation.Peer, Reason: "user pressed stop"}, *cancelled)
}
