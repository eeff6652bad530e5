package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// lockWait is how long SQLite itself waits for another writer.
	lockWait = 2 * time.Second
	// lockPatience is how long begin goes on asking. The wait ends
	// with the context, so a call that queues for the lock can be cancelled.
	lockPatience = 30 * time.Second
	// ownerMark is the application id of SQLite files that longtool filled:
	// it never empties tables that somebody else created.
	ownerMark = 0x4c4f4e47
)

// pragmas are the settings of every SQLite connection.
var pragmas = []string{
	fmt.Sprintf("busy_timeout(%d)", lockWait.Milliseconds()),
	"journal_mode(wal)", // readers see the board while a batch is written
	"foreign_keys(1)",
}

var (
	errLocked  = errors.New("it is locked by another program")
	errForeign = errors.New("it holds somebody else's tables")
)

// A database is a job board in SQLite or PostgreSQL. Every statement of this
// program is written so that both understand it; what differs is in this file.
type database struct {
	*sql.DB
	// Name is for people: a file path, or a URL without its password.
	name    string
	dialect string // "SQLite" or "PostgreSQL"

	// They are set by openDatabase, and by nobody once there are leases.
	now      func() time.Time // the clock by which leases run out
	lease    time.Duration    // how long they last
	patience time.Duration    // with whoever else holds the write lock
}

// openDatabase opens the database that where names, a file path or a
// postgres:// URL, and creates the tables that are missing.
func openDatabase(ctx context.Context, where string) (*database, error) {
	db := &database{name: where, dialect: "SQLite", now: time.Now, lease: leaseTime, patience: lockPatience}
	var err error
	if isPostgres(where) {
		db.dialect = "PostgreSQL"
		db.name = redacted(where)
		db.DB, err = openPostgres(where)
	} else {
		db.DB, err = openSQLite(where)
	}
	if err == nil {
		if err = db.createTables(ctx); err != nil {
			_ = db.DB.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use database %q: %w", db.name, db.explain(err))
	}
	return db, nil
}

func openSQLite(path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// The driver would create the file but not its folder, and reports both
	// faults with the same words.
	if info, err := os.Stat(filepath.Dir(abs)); err != nil {
		return nil, fmt.Errorf("no folder %q", filepath.Dir(abs))
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a folder", filepath.Dir(abs))
	}
	if info, err := os.Stat(abs); err == nil && info.IsDir() {
		return nil, errors.New("it is a folder")
	}
	abs = filepath.ToSlash(abs)
	if !strings.HasPrefix(abs, "/") {
		abs = "/" + abs // a drive letter
	}
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: url.Values{
		// A transaction here always writes. Taking the write lock first means
		// that it waits at its start, never in the middle.
		"_txlock": {"immediate"},
		"_pragma": pragmas,
	}.Encode()}
	return sql.Open("sqlite", dsn.String())
}

// SQLite has no pg_sleep, PostgreSQL's function that takes its time. Giving
// it one lets a statement be slow in both, and lets both be interrupted in it:
// SQLite between two rows, PostgreSQL at any moment.
func init() {
	sqlite.MustRegisterScalarFunction("pg_sleep", 1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			switch seconds := args[0].(type) {
			case float64:
				time.Sleep(time.Duration(seconds * float64(time.Second)))
			case int64:
				time.Sleep(time.Duration(seconds) * time.Second)
			}
			return "", nil
		})
}

// forUpdate ends a select whose rows the transaction will change. PostgreSQL
// then locks them in the order of the select, so that two operations wait for
// one another and cannot deadlock. SQLite has one lock, taken by begin.
func (db *database) forUpdate() string {
	if db.dialect == "PostgreSQL" {
		return "for update"
	}
	return ""
}

// begin starts a writing transaction that ends with ctx: when ctx is cancelled
// before the commit, everything is rolled back. On SQLite it waits for the one
// write lock.
func (db *database) begin(ctx context.Context) (*sql.Tx, error) {
	for start := time.Now(); ; {
		tx, err := db.BeginTx(ctx, nil)
		if err == nil || !isLocked(err) || ctx.Err() != nil || time.Since(start) > db.patience {
			return tx, err
		}
	}
}

// commit commits unless the request was cancelled before. A cancel that comes
// later waits for the end of the commit, so that its outcome is known.
func commit(ctx context.Context, tx *sql.Tx) error {
	return cancellation.Shield(ctx, func(context.Context) error { return tx.Commit() })
}

// explain turns a driver's error into words that help.
func (db *database) explain(err error) error {
	if isLocked(err) {
		return errLocked
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			return errors.New("it cannot be written")
		case sqlite3.SQLITE_NOTADB:
			return errors.New("it is not an SQLite file")
		}
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		// The driver lists every address it tried, one a line.
		first, _, _ := strings.Cut(connect.Unwrap().Error(), "\n")
		return fmt.Errorf("no connection: %s", first)
	}
	return err
}

func isLocked(err error) bool {
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return false
	}
	code := lite.Code() & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

func isPostgres(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// redacted is a URL as it may be shown, without its password.
func redacted(where string) string {
	u, err := url.Parse(where)
	if err != nil {
		return "postgres://…"
	}
	if query := u.Query(); query.Has("password") {
		query.Set("password", "xxxxx")
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}

// micros is an instant as both databases store it.
func micros(t time.Time) int64 { return t.UnixMicro() }
