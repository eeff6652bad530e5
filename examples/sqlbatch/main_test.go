package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/heedmcp/heed/cancellation/cancellationtest"
	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// database has so many orders of 2019, and one of 2026.
func database(t testing.TB, orders int) (path string, db *sql.DB) {
	path = filepath.Join(t.TempDir(), "orders.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Exec(schema)
	require.NoError(t, err)
	_, err = db.Exec(`WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO orders (year) SELECT 2019 FROM n`, orders)
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO orders (year) VALUES (2026)`)
	require.NoError(t, err)
	return path, db
}

func count(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(query, args...).Scan(&n))
	return n
}

const (
	archived = `SELECT count(*) FROM orders WHERE archived_by = 'op'`
	inLedger = `SELECT coalesce(sum(orders), 0) FROM ledger WHERE operation = 'op'`
)

// After a cancel rows and ledger agree, and nothing is changed any more; the same call does the rest.
func TestArchiveStopsAndGoesOn(t *testing.T) {
	const orders = 6_050
	path, db := database(t, orders)
	session := host.Start(t, host.Program(t, path), host.Options{})
	arguments := map[string]any{"operation": "op", "before": 2020}

	call := session.Begin("archive_orders", arguments)
	for range 3 {
		call.Report()
	}
	call.Stop()
	// One call at a time: that this one is answered says that the handler of the other has returned.
	session.Text("archive_orders", map[string]any{"operation": "nothing", "before": 1})
	done := count(t, db, archived)
	assert.Positive(t, done)
	assert.Less(t, done, orders, "the call was not stopped")
	assert.Zero(t, done%batchSize, "a batch was split")
	assert.Equal(t, done, count(t, db, inLedger))

	again := session.Begin("archive_orders", arguments)
	report := again.Report()
	assert.EqualValues(t, done, report.Progress, "it goes on where the other has stopped")
	assert.EqualValues(t, orders, report.Total)
	assert.Equal(t, "archived 6050 orders in 61 batches", again.Text())
	assert.Equal(t, orders, count(t, db, archived))
	assert.Equal(t, orders, count(t, db, inLedger))
	assert.Equal(t, 1, count(t, db, `SELECT count(*) FROM orders WHERE archived_by IS NULL`))
}

// The same at each point at which it can be cancelled.
func TestArchiveIsWholeWheneverItIsCancelled(t *testing.T) {
	in := archiveIn{Operation: "op", Before: 2020}
	cancellationtest.Every(t, func(t testing.TB) cancellationtest.Run {
		_, db := database(t, 250)
		a := &archive{db}
		return cancellationtest.Run{
			Handler: func(ctx context.Context) error {
				_, err := a.run(ctx, nil, in)
				return err
			},
			Check: func(t testing.TB, o cancellationtest.Outcome) {
				assert.Equal(t, count(t, db, archived), count(t, db, inLedger))
				said, err := a.run(context.Background(), nil, in)
				require.NoError(t, err)
				assert.Equal(t, "archived 250 orders in 3 batches", said)
			},
		}
	})
}
