package dbtest_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/tasks/sqlstore"
	"github.com/heedmcp/heed/tasks/storetest"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

const postgresURL = "HEED_TEST_POSTGRES"

// place is an empty place for tables in some database.
type place struct {
	db      *sql.DB
	dialect sqlstore.Dialect
	table   string
}

func (p *place) open(t *testing.T, max int) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), p.db, p.dialect, &sqlstore.Options{Table: p.table, MaxTasks: max})
	require.NoError(t, err)
	return s
}

var tables atomic.Int64

// onEachDatabase runs test on SQLite, and on PostgreSQL where there is one.
func onEachDatabase(t *testing.T, test func(t *testing.T, fresh func(t *testing.T) *place)) {
	t.Run("SQLite", func(t *testing.T) {
		test(t, func(t *testing.T) *place {
			db, err := openSQLite(filepath.Join(t.TempDir(), "tasks.db"))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			return &place{db, sqlstore.SQLite, ""}
		})
	})
	where := os.Getenv(postgresURL)
	if where == "" {
		return
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		test(t, func(t *testing.T) *place {
			db, err := sql.Open("pgx", where)
			require.NoError(t, err)
			p := &place{db, sqlstore.PostgreSQL, fmt.Sprintf("heed_test_%d_%d", os.Getpid(), tables.Add(1))}
			t.Cleanup(func() {
				for _, table := range []string{p.table, p.table + "_signals"} {
					_, err := db.ExecContext(context.WithoutCancel(t.Context()), "drop table if exists "+table)
					assert.NoError(t, err)
				}
				assert.NoError(t, db.Close())
			})
			return p
		})
	})
}

func TestStoreKeepsTheContract(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, fresh func(*testing.T) *place) {
		storetest.Run(t, func(t *testing.T, max int) tasks.Store { return fresh(t).open(t, max) })
	})
}

// A second process finds what the first one has written.
func TestStoreIsSharedByProcesses(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, fresh func(*testing.T) *place) {
		p := fresh(t)
		first, second := p.open(t, 0), p.open(t, 0)
		require.NoError(t, first.Create(t.Context(), &tasks.Record{ID: "a", Status: tasks.Working, Run: 1}))
		r, err := second.Load(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, tasks.Working, r.Status)
	})
}

func TestSchemaCanBeCreatedByOthers(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, fresh func(*testing.T) *place) {
		p := fresh(t)
		for range 2 { // a second time does no harm
			for _, statement := range sqlstore.Schema(p.dialect, p.table) {
				_, err := p.db.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
		}
		s, err := sqlstore.Open(t.Context(), p.db, p.dialect, &sqlstore.Options{Table: p.table, NoSchema: true})
		require.NoError(t, err)
		require.NoError(t, s.Create(t.Context(), &tasks.Record{ID: "a", Status: tasks.Working, Run: 1}))
	})
}

func TestOpenRefusesWhatIsWrong(t *testing.T) {
	p := (&place{}).db
	_, err := sqlstore.Open(t.Context(), p, sqlstore.Dialect(7), nil)
	require.ErrorContains(t, err, "Dialect(7)")
	for _, name := range []string{"x;drop table y", "Übung", "A", "1a", "a b", `"a"`} {
		_, err = sqlstore.Open(t.Context(), p, sqlstore.SQLite, &sqlstore.Options{Table: name})
		require.ErrorContains(t, err, "no name for a table", name)
	}
	closed, err := sql.Open("sqlite", "file:"+t.TempDir()+"/x.db")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	_, err = sqlstore.Open(t.Context(), closed, sqlstore.SQLite, nil)
	require.Error(t, err)
	assert.Equal(t, "PostgreSQL", sqlstore.PostgreSQL.String())
}
