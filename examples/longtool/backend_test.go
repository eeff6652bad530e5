package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// stopBound is how long a statement may run on in PostgreSQL after Stop, beside what the
	// database and the machine need to end one at all.
	stopBound  = 200 * time.Millisecond
	stopRounds = 10 // of five tries
)

// Stop reaches the statement in the database's own process: all the way from the
// client, through the server, to the backend that works for it.
func TestStopEndsTheStatementOnPostgreSQL(t *testing.T) {
	if os.Getenv(postgresURL) == "" {
		t.Log(leftOut)
		return
	}
	for _, reach := range []*reach{&overStdio, &overHTTP} {
		t.Run(reach.name, func(t *testing.T) {
			where := newPostgres(t)
			db := openTest(t, where)
			fillTest(t, db, 20)
			l, err := reach.open(t.Context(), where)
			require.NoError(t, err)
			defer func() { require.NoError(t, l.close()) }()

			runs := 0
			fast := func(round int) bool {
				var took, alone []time.Duration
				for range 5 {
					took = append(took, stopStatement(t, db, callOf(t, l)))
					runs++
					status, err := db.settled(t.Context(), "op", surely)
					require.NoError(t, err)
					require.Equal(t, &Status{OperationID: "op", State: stateStopped, Runs: runs, Total: 20}, status, "the batch is rolled back")
					requireAudit(t, db, false)
					alone = append(alone, stopStatement(t, db, statementOf(t, where)))
				}
				t.Logf("round %d: the backend stopped after %v; without a server between, after %v", round, took, alone)
				return median(took) < stopBound+median(alone)
			}
			// What a busy machine delays it delays without a server, too, and not in each round.
			for round := 1; !fast(round); round++ {
				require.Less(t, round, stopRounds, "it took too long in each round")
			}

			var status Status
			require.NoError(t, l.call(t.Context(), toolCall(closeTool, map[string]any{"operation_id": "op"}), &status))
			require.Equal(t, stateCompleted, status.State)
			requireAudit(t, db, true)
		})
	}
}

func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}

// callOf calls the tool, which takes a minute.
func callOf(t *testing.T, l *link) func(context.Context) error {
	return func(ctx context.Context) error {
		var status Status
		return l.call(ctx, toolCall(closeTool, map[string]any{"operation_id": "op", "batch": 20, "delay": "1m"}), &status)
	}
}

// statementOf runs a statement that takes as long, on a connection of its own.
func statementOf(t *testing.T, where string) func(context.Context) error {
	return func(ctx context.Context) error {
		db, err := openPostgres(where)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.ExecContext(ctx, "select pg_sleep(45)")
		return errors.Join(err, context.Cause(ctx))
	}
}

// stopStatement begins a call, presses Stop while its statement runs, and
// returns how long the backend was active after that, by PostgreSQL's own clock.
func stopStatement(t *testing.T, db *database, call func(context.Context) error) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	var backend int
	await(t, func() bool {
		err := db.QueryRowContext(t.Context(), `
			select pid from pg_stat_activity
			where datname = current_database() and state = 'active' and wait_event = 'PgSleep'`).Scan(&backend)
		if err != nil {
			require.ErrorIs(t, err, sql.ErrNoRows)
		}
		return err == nil
	})
	pressed := time.Now()
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	var left time.Time
	await(t, func() bool {
		// The rollback after it is a statement too, and short.
		var active bool
		err := db.QueryRowContext(t.Context(), `
			select state = 'active' and query like '%pg_sleep%', state_change from pg_stat_activity where pid = $1`,
			backend).Scan(&active, &left)
		if errors.Is(err, sql.ErrNoRows) { // its connection is gone already
			active, left, err = false, time.Now(), nil
		}
		require.NoError(t, err)
		return !active
	})
	return left.Sub(pressed)
}

// A cancel that arrives late must not hit the next call on the connection.
func TestCancelledConnectionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	if os.Getenv(postgresURL) == "" {
		t.Log(leftOut)
		return
	}
	where := newPostgres(t)
	db := openTest(t, where)
	db.SetMaxOpenConns(1)
	other := openTest(t, where)
	backend := func() int {
		pid, err := db.count(t.Context(), `select pg_backend_pid()`)
		require.NoError(t, err)
		return pid
	}
	before := backend()
	require.Equal(t, before, backend(), "connections are kept otherwise")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(ctx, `select pg_sleep(600)`)
		ended <- err
	}()
	await(t, func() bool {
		n, err := other.count(t.Context(), sleepingBackends)
		require.NoError(t, err)
		return n > 0
	})
	cancel()
	require.Error(t, <-ended)
	require.NotEqual(t, before, backend())
}
