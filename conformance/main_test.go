package conformance_test

import (
	"context"
	"encoding/json"
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
	return m.Run()
}

var buildEverything = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(binaries, "everything.exe") // a name that every system runs
	args := []string{"build", "-o", binary}
	if raceEnabled {
		args = append(args, "-race") // a race makes the server's exit status 66
	}
	output, err := exec.Command("go", append(args, "../examples/everything")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return binary, nil
})

// everything returns the fixture server, built once for all tests.
func everything(t *testing.T) string {
	t.Helper()
	binary, err := buildEverything()
	require.NoError(t, err)
	return binary
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

// verdict is a line that a script of clients/ prints.
type verdict struct {
	Client string `json:"client"`
	Era    string `json:"era"`
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Millis int    `json:"ms"`
}

// runClient runs a script of clients/ and returns its verdicts and its stderr.
// Scripts whose exit status contradicts their verdicts fail the test.
func runClient(ctx context.Context, t *testing.T, args ...string) ([]verdict, string) {
	t.Helper()
	var stdout, stderr strings.Builder
	command := exec.CommandContext(ctx, node(t), args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()

	var verdicts []verdict
	failed := false
	decoder := json.NewDecoder(strings.NewReader(stdout.String()))
	for decoder.More() {
		var v verdict
		require.NoErrorf(t, decoder.Decode(&v), "stdout: %s\nstderr: %s", &stdout, &stderr)
		failed = failed || !v.OK
		verdicts = append(verdicts, v)
	}
	require.NotEmptyf(t, verdicts, "no verdict (%v); stderr: %s", err, &stderr)
	var exit *exec.ExitError
	switch {
	case err == nil:
		require.Falsef(t, failed, "exit status 0 although a check failed: %s", &stdout)
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		require.Truef(t, failed, "exit status 1 although no check failed: %s\nstderr: %s", &stdout, &stderr)
	default:
		require.NoErrorf(t, err, "stdout: %s\nstderr: %s", &stdout, &stderr)
	}
	return verdicts, stderr.String()
}
