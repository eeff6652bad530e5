package conformance_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// binaries is where the servers under test are built. Written by TestMain
// before the first test.
var binaries string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "heed-conformance-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries = dir
	// Of the programs under test: without it each takes a second longer to end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// program is a Go program of this repository, built once for all tests.
type program struct {
	source string // its folder, seen from this one
	built  func() (string, error)
}

// newProgram is a program to be built with the flags. A go.mod that they name stands alone.
func newProgram(name, source string, race bool, flags ...string) *program {
	return &program{source, sync.OnceValues(func() (string, error) {
		binary := filepath.Join(binaries, name+".exe") // a name that every system runs
		args := append([]string{"build", "-o", binary}, flags...)
		if race {
			args = append(args, "-race")
		}
		command := exec.Command("go", append(args, ".")...)
		command.Dir = source
		if len(flags) > 0 {
			command.Env = append(os.Environ(), "GOWORK=off")
		}
		if output, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), source, err, output)
		}
		return binary, nil
	})}
}

func (p *program) path(t *testing.T) string {
	t.Helper()
	binary, err := p.built()
	require.NoError(t, err)
	return binary
}

var (
	everythingProgram = newProgram("everything", "../examples/everything", raceEnabled) // a race makes the exit status 66
	plainProgram      = newProgram("plain", "../examples/everything", false)            // the same without what finds races
	goClientsNewest   = newProgram("goclients", "goclients", false)
	goClientsOldest   = newProgram("goclients-oldest", "goclients", false, "-modfile=oldest.mod", "-tags=oldest")
)

// everything returns the fixture server.
func everything(t *testing.T) string {
	t.Helper()
	return everythingProgram.path(t)
}

// node returns the pinned Node. Where npm has no package of it for this
// system, the one on the PATH has to do.
func node(t *testing.T) string {
	t.Helper()
	_, err := os.Stat("node_modules/.package-lock.json")
	require.NoError(t, err, "the npm packages are not installed: run `make test`, or `npm ci` in conformance/")
	pinned, err := filepath.Abs("node_modules/.bin/node")
	require.NoError(t, err)
	if _, err := os.Stat(pinned); err == nil {
		return pinned
	} else if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	onPath, err := exec.LookPath("node")
	require.NoError(t, err, "there is no npm package of Node for this system, and no node on the PATH")
	return onPath
}
