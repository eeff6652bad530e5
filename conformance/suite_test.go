package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// suiteMain is the official conformance suite.
const suiteMain = "node_modules/@modelcontextprotocol/conformance/dist/index.js"

// TestOfficialSuite runs the official conformance suite against one server, on
// one URL, in one configuration. There is no file of expected failures, and a
// warning is a failure.
func TestOfficialSuite(t *testing.T) {
	url := serveEverything(t)
	for _, run := range [][]string{
		{"--requirements", "2025-11-25"},
		{"--requirements", "2026-07-28"},
		{"--suite", "all"},
	} {
		t.Run(strings.TrimLeft(strings.Join(run, " "), "-"), func(t *testing.T) {
			scenarios := runSuite(t, url, run...)
			require.NotEmpty(t, scenarios)
			for name, checks := range scenarios {
				judge(t, name, checks)
			}
			if run[0] == "--suite" {
				notSkipped(t, scenarios, "sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory")
			}
		})
	}
}

// check is one line of a scenario's report.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
	Text    string `json:"description"`
}

// judge fails the test for each check of a scenario that failed or warned.
func judge(t *testing.T, scenario string, checks []check) {
	t.Helper()
	assert.NotEmpty(t, checks, "scenario %s checked nothing", scenario)
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS", "SKIPPED", "INFO":
		default:
			assert.Fail(t, c.Status, "%s: %s: %s: %s", scenario, c.ID, c.Text, c.Message)
		}
	}
}

// notSkipped fails the test for scenarios of extensions that pass because the server
// has not got the extension.
func notSkipped(t *testing.T, scenarios map[string][]check, names ...string) {
	t.Helper()
	for _, name := range names {
		assert.Contains(t, scenarios, name)
		for _, c := range scenarios[name] {
			assert.NotEqual(t, "SKIPPED", c.Status, "%s: %s: %s", name, c.ID, c.Message)
		}
	}
}

// runSuite runs the suite and returns the checks of each scenario.
func runSuite(t *testing.T, url string, args ...string) map[string][]check {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, node(t), append([]string{suiteMain, "server", "--url", url, "-o", dir}, args...)...)
	output, err := command.CombinedOutput() // its exit status counts what judge reports
	require.NoError(t, ctx.Err(), "the suite did not end: %s", output)
	reports, globErr := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	require.NoError(t, globErr)
	require.NotEmpty(t, reports, "the suite wrote no reports (%v): %s", err, output)

	stamp := regexp.MustCompile(`^server-(.+?)-\d{4}-\d\d-\d\dT.*$`)
	scenarios := map[string][]check{}
	for _, path := range reports {
		name := stamp.FindStringSubmatch(filepath.Base(filepath.Dir(path)))
		require.Len(t, name, 2, path)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var checks []check
		require.NoError(t, json.Unmarshal(raw, &checks))
		scenarios[name[1]] = checks
	}
	return scenarios
}

// serveEverything starts the fixture server over HTTP and returns its URL. It
// must end with status 0 when the test does.
func serveEverything(t *testing.T) string {
	t.Helper()
	url, _ := startEverything(t, everything(t))
	return url
}

// startEverything is serveEverything for tests that look at the process. variables are added
// to its environment.
func startEverything(t *testing.T, binary string, variables ...string) (url string, pid int) {
	t.Helper()
	command := exec.Command(binary, "http", "-addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), variables...)
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	var log strings.Builder
	logged := make(chan struct{})
	listening := make(chan string, 1) // the URL; closed without one when the server ends
	go func() {
		defer close(logged)
		defer close(listening)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(&log, lines.Text())
			if url, ok := strings.CutPrefix(lines.Text(), "everything: listening on "); ok {
				listening <- url
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		<-logged
		assert.NoError(t, command.Wait(), "the server's log:\n%s", &log)
	})
	url, ok := <-listening
	require.True(t, ok, "the server does not listen")
	return url, command.Process.Pid
}
