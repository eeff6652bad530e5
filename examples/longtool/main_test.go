package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The program under test is this test binary, started again with this set.
const asProgram = "LONGTOOL_AS_PROGRAM"

func TestMain(m *testing.M) {
	shutdownWithin = surely
	// Nothing here outlives a power cut.
	pragmas = append(pragmas, "synchronous(off)")
	if where := os.Getenv(killedClient); where != "" {
		runKilledClient(where)
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Setenv(asProgram, "1") // for what the tests start
	// They wait for their processes more than they work.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	if os.Getenv(postgresURL) == "" {
		fmt.Fprintln(os.Stderr, leftOut)
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// program is a command that runs longtool with these arguments.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, args...)
	command.Env = os.Environ()
	command.Dir = t.TempDir()
	return command
}

// inProcess runs the program's main function, less the process around it.
func inProcess(args ...string) (status int, stdout, stderr string) {
	var out, err strings.Builder
	status = run(args, &out, &err)
	return status, out.String(), err.String()
}

// requireOneLine checks an error message as a user sees it.
func requireOneLine(t *testing.T, want, stderr string) {
	t.Helper()
	require.Contains(t, stderr, want)
	require.True(t, strings.HasPrefix(stderr, "longtool: "), "%q", stderr)
	require.Equal(t, 1, strings.Count(stderr, "\n"), "%q", stderr)
	require.True(t, strings.HasSuffix(stderr, "\n"), "%q", stderr)
}

// onEachDatabase runs a test on every kind of database there is, at the same time.
func onEachDatabase(t *testing.T, test func(t *testing.T, db *database)) {
	onEachPlace(t, func(t *testing.T, where string) { test(t, openTest(t, where)) })
}

// onEachPlace is onEachDatabase for tests that open it themselves.
func onEachPlace(t *testing.T, test func(t *testing.T, where string)) {
	onEachKind(t, func(t *testing.T, place func(*testing.T) string) { test(t, place(t)) })
}

// onEachKind is onEachPlace for tests that want many databases.
func onEachKind(t *testing.T, test func(t *testing.T, place func(*testing.T) string)) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T) string { return filepath.Join(t.TempDir(), "board.db") })
	})
	if os.Getenv(postgresURL) != "" {
		t.Run("PostgreSQL", func(t *testing.T) {
			t.Parallel()
			test(t, newPostgres)
		})
	}
}

func openTest(t *testing.T, where string) *database {
	t.Helper()
	db, err := openDatabase(t.Context(), where)
	require.NoError(t, err)
	db.lease = time.Hour // no machine is slow enough to lose it
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// surely is how long something may take that has to happen, on a machine that does much else.
const surely = 2 * time.Minute

// await asks until it is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), surely)
	defer cancel()
	for !so() {
		require.NoError(t, pause(ctx, time.Millisecond))
	}
}

func fillTest(t *testing.T, db *database, stale int) {
	t.Helper()
	require.NoError(t, db.fill(t.Context(), stale, func(int, int) {}))
}

// requireAudit checks every invariant.
func requireAudit(t testing.TB, db *database, finished bool) {
	t.Helper()
	findings, err := db.audit(t.Context(), finished)
	require.NoError(t, err)
	for _, f := range findings {
		require.Truef(t, f.holds(), "not true that %s: %d rows (%s)", f.claim, f.wrong, f.detail)
	}
}
