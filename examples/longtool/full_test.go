package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// poolSize is more connections than a job needs at once.
const poolSize = 8

// onEachConnection runs a statement on each connection of a pool, which keeps them all.
func onEachConnection(t *testing.T, db *database, statement string) {
	t.Helper()
	db.SetMaxIdleConns(poolSize)
	db.SetMaxOpenConns(poolSize)
	var all []*sql.Conn
	for range poolSize {
		c, err := db.Conn(t.Context())
		require.NoError(t, err)
		_, err = c.ExecContext(t.Context(), statement)
		require.NoError(t, err)
		all = append(all, c)
	}
	for _, c := range all {
		require.NoError(t, c.Close())
	}
}

// A full disk fails the job in the middle. What was committed stays, what was not is not there, and
// when there is room again a retry finishes the rest.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	db := openTest(t, filepath.Join(t.TempDir(), "board.db"))
	fillTest(t, db, 120)
	var pages int
	require.NoError(t, db.QueryRowContext(t.Context(), "pragma page_count").Scan(&pages))
	onEachConnection(t, db, fmt.Sprintf("pragma max_page_count = %d", pages+2))
	_, err := testJob(db, 20).run(t.Context())
	require.ErrorContains(t, err, "full")
	requireAudit(t, db, false)

	onEachConnection(t, db, "pragma max_page_count = 1000000")
	status, err := testJob(db, 20).run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 120, status.Closed)
	requireAudit(t, db, true)
}

// Somebody else locks the database while a job runs: the job can still be stopped, and a retry
// finishes it.
func TestDatabaseIsLockedMeanwhile(t *testing.T) {
	t.Parallel()
	db := openTest(t, filepath.Join(t.TempDir(), "board.db"))
	db.lease = leaseTime // which cannot be given back while the database is locked
	db.patience = time.Hour
	fillTest(t, db, 60)
	other, err := db.Conn(t.Context())
	require.NoError(t, err)
	j := testJob(db, 10)
	locked := false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	j.report = func(ctx context.Context, done float64, total int, phase string) error {
		if phase == phaseClosed && !locked {
			locked = true
			_, err := other.ExecContext(ctx, "begin immediate")
			require.NoError(t, err)
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		return silent(ctx, done, total, phase)
	}
	_, err = j.run(ctx) // which would take an hour if it waited for the lock
	require.ErrorIs(t, err, context.Canceled)
	_, err = other.ExecContext(t.Context(), "rollback")
	require.NoError(t, err)
	require.NoError(t, other.Close())
	requireAudit(t, db, false)

	status, err := testJob(db, 10).run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 60, status.Closed)
	requireAudit(t, db, true)
}
