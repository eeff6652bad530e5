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

// stopBound is how long a statement may run on in PostgreSQL after Stop.
const stopBound = 200 * time.Millisecond

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

			var took []time.Duration
			for range 5 {
				took = append(took, stopStatement(t, db, l))
				status, err := db.settled(t.Context(), "op", 30*time.Second)
				require.NoError(t, err)
				require.Equal(t, &Status{OperationID: "op", State: stateStopped, Runs: len(took), Total: 20}, status, "the batch is rolled back")
				requireAudit(t, db, false)
			}
			t.Logf("the backend stopped after %v", took)
			// One that a busy machine delayed proves nothing; most of them do.
			slices.Sort(took)
			require.Less(t, took[len(took)/2], stopBound, "%v", took)

			var status Status
			require.NoError(t, l.call(t.Context(), toolCall(closeTool, map[string]any{"operation_id": "op"}), &status))
			require.Equal(t, stateCompleted, status.State)
			requireAudit(t, db, true)
		})
	}
}

// stopStatement calls the tool, presses Stop while its statement runs, and
// returns how long the backend was active after that, by PostgreSQL's own clock.
func stopStatement(t *testing.T, db *database, l *link) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		var status Status
		ended <- l.call(ctx, toolCall(closeTool, map[string]any{"operation_id": "op", "batch": 20, "delay": "1m"}), &status)
	}()
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

// await asks until it is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !so() {
		require.NoError(t, pause(ctx, time.Millisecond))
	}
}

// A cancel that arrives late must not hit the next call on the connection.
func TestCancelledConnectionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	if os.Getenv(postgresURL) == "" {
		t.Log(leftOut)
		return
	}
	db := openTest(t, newPostgres(t))
	db.SetMaxOpenConns(1)
	backend := func() int {
		pid, err := db.count(t.Context(), `select pg_backend_pid()`)
		require.NoError(t, err)
		return pid
	}
	before := backend()
	require.Equal(t, before, backend(), "connections are kept otherwise")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(ctx, `select pg_sleep(60)`)
	require.Error(t, err)
	require.NotEqual(t, before, backend())
}
