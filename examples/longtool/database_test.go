package main

import (
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A database that cannot be used ends the program with one line and status 2,
// in the story and in the server alike.
func TestUnusableDatabases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("this is a text, and longer than a header of an SQLite file, which has 100 bytes: so it can be told apart from one"), 0o600))
	foreign := filepath.Join(dir, "foreign.db")
	lite, err := sql.Open("sqlite", foreign)
	require.NoError(t, err)
	_, err = lite.Exec(`create table postings (mine text)`)
	require.NoError(t, err)
	require.NoError(t, lite.Close())
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := nobody.Addr().String()
	require.NoError(t, nobody.Close())

	type unusable struct{ where, want string }
	cases := []unusable{
		{dir, "it is a folder"},
		{filepath.Join(dir, "missing", "board.db"), "no folder"},
		{filepath.Join(file, "board.db"), "is not a folder"},
		{file, "it is not an SQLite file"},
		{foreign, "it holds somebody else's tables"},
		{"postgres://me:secret@" + closed + "/d?connect_timeout=2", "no connection: "},
	}
	if runtime.GOOS == "linux" {
		cases = append(cases, unusable{"/proc/board.db", "it cannot be written"})
	}
	for _, c := range cases {
		for _, command := range [][]string{{"-quiet"}, {"serve", "-stdio"}, {"serve", "-http", "127.0.0.1:0"}} {
			status, stdout, stderr := inProcess(append(command, "-db", c.where)...)
			require.Equal(t, exitUsage, status, "%q: %s", c.where, stderr)
			require.Empty(t, stdout)
			requireOneLine(t, c.want, stderr)
			require.Contains(t, stderr, "cannot use database")
			require.NotContains(t, stderr, "secret")
		}
	}
}

func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "board.db")
	db := openTest(t, path)
	tx, err := db.begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.Exec(`insert into postings (id, title, age_days) values (1, 'Nurse, Riga', 1)`)
	require.NoError(t, err)

	status, _, stderr := inProcess("-quiet", "-db", path)
	require.Equal(t, exitUsage, status)
	requireOneLine(t, "it is locked by another program", stderr)
}

// A board that an operation works on is not emptied under its hands.
func TestFillLeavesARunningOperationAlone(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		fillTest(t, db, 10)
		held, err := db.acquire(t.Context(), "op", staleDays)
		require.NoError(t, err)
		require.ErrorContains(t, db.fill(t.Context(), 10, func(int, int) {}), "an operation is running on it")
		held.release(t.Context())
		fillTest(t, db, 10)
	})
}

func TestFillIsRepeatable(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *database) {
		for _, stale := range []int{1, 4, 5, 7, 103} {
			fillTest(t, db, stale)
			first, err := db.size(t.Context())
			require.NoError(t, err)
			require.Equal(t, stale, first.stale)
			require.Equal(t, stale/4, first.fresh)
			fillTest(t, db, stale)
			second, err := db.size(t.Context())
			require.NoError(t, err)
			require.Equal(t, first, second)
		}
	})
}

// File names mean themselves, whatever an URL would make of them.
func TestFileNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with space.db", "a?b.db", "a#b.db", "100%25.db", "é.db", "a&_pragma=x.db"} {
		path := filepath.Join(t.TempDir(), name)
		fillTest(t, openTest(t, path), 1)
		require.FileExists(t, path)
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	require.Equal(t, "postgres://me:xxxxx@host/d", redacted("postgres://me:secret@host/d"))
	require.Equal(t, "postgres://host/d?password=xxxxx", redacted("postgres://host/d?password=secret"))
	require.Equal(t, "postgres://…", redacted("postgres://me:sec ret@ho st/d"))
}
