package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// client is somebody else's client, in one revision, and the checks that it runs: a
// script of clients/ or a mode of goclients/.
type client struct {
	name    string
	era     string
	least   int                         // so many verdicts; a program that checks next to nothing is no success
	program func(t *testing.T) []string // and its first arguments
	dash    string                      // how its flags begin
}

// surely is how long something may take that has to happen, on a machine that does much else.
const surely = time.Minute

// A client needs some ten seconds, most of them waits of the fixture's tools.
const clientLimit = 10 * time.Minute

func script(args ...string) func(*testing.T) []string {
	return func(t *testing.T) []string { return append([]string{node(t)}, args...) }
}

func goClient(newestOrOldest *program, which, revision string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		return []string{newestOrOldest.path(t), "-client=" + which, "-revision=" + revision}
	}
}

// clients are all of them, each in its newest version and in the oldest that is still common.
// oldest is the oldest revision to try of the newest versions. The oldest speak the newest that
// they know.
func clients(oldest string) []client {
	return []client{
		{"typescript_v1", "handshake", 18, script("clients/typescript_v1.mjs"), "--"},
		{"typescript_v2_legacy", "handshake", 18, script("clients/typescript_v2.mjs", "--mode=legacy"), "--"},
		{"typescript_v2_pinned", "stateless", 18, script("clients/typescript_v2.mjs", "--mode=pin"), "--"},
		{"typescript_v2_negotiated", "stateless", 18, script("clients/typescript_v2.mjs", "--mode=auto"), "--"},
		{"go_sdk_newest", "stateless", 19, goClient(goClientsNewest, "official", "2026-07-28"), "-"},
		{"go_sdk_handshake", "handshake", 19, goClient(goClientsNewest, "official", "2025-11-25"), "-"},
		{"go_sdk_oldest", "handshake", 18, goClient(goClientsNewest, "official", oldest), "-"},
		{"mcp_go_newest", "stateless", 19, goClient(goClientsNewest, "mcp-go", "2026-07-28"), "-"},
		{"mcp_go_handshake", "handshake", 19, goClient(goClientsNewest, "mcp-go", "2025-11-25"), "-"},
		{"mcp_go_oldest", "handshake", 18, goClient(goClientsNewest, "mcp-go", oldest), "-"},

		{"first_typescript_v1", "handshake", 17, script("clients/typescript_v1.mjs", "--package=sdk-oldest"), "--"},
		{"first_typescript_v2_legacy", "handshake", 18, script("clients/typescript_v2.mjs", "--package=client-oldest", "--mode=legacy"), "--"},
		{"first_typescript_v2_pinned", "stateless", 18, script("clients/typescript_v2.mjs", "--package=client-oldest", "--mode=pin"), "--"},
		{"first_go_sdk", "handshake", 19, goClient(goClientsOldest, "official", "2025-06-18"), "-"},
		{"year_old_mcp_go", "handshake", 12, goClient(goClientsOldest, "mcp-go", "2025-06-18"), "-"}, // over stdio it has no Stop
	}
}

// visit is one run of a client. The client is started by run, which may be called on any
// goroutine, and judged afterwards.
type visit struct {
	client   client
	flags    []string // without their dashes
	target   []string // the last arguments
	verdicts []verdict
	stderr   string
	err      error
}

// run runs the client to its end.
func (v *visit) run(t *testing.T, program []string) {
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	args := program
	for _, flag := range v.flags {
		args = append(args, v.client.dash+flag)
	}
	v.verdicts, v.stderr, v.err = runClient(ctx, append(args, v.target...))
}

// patience is the flag that says how long the server may take for what it does at once.
func (c *client) patience(d time.Duration) string {
	if c.dash == "-" {
		return "patience=" + d.String()
	}
	return fmt.Sprintf("patience=%d", d.Milliseconds())
}

// runAll runs all clients, so many of them at the same time. What they need is built before.
func runAll(t *testing.T, visits []*visit, atOnce int) {
	t.Helper()
	var group sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, v := range visits {
		program := v.client.program(t)
		group.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			v.run(t, program)
		})
	}
	group.Wait()
}

// judge judges each verdict in a test of its own.
func (v *visit) judge(t *testing.T) {
	require.NoError(t, v.err)
	for _, verdict := range v.verdicts {
		t.Run(verdict.Check, func(t *testing.T) {
			assert.Equal(t, v.client.era, verdict.Era)
			assert.True(t, verdict.OK, verdict.Error)
		})
	}
	require.GreaterOrEqual(t, len(v.verdicts), v.client.least)
	assert.Equal(t, "quiet", v.verdicts[len(v.verdicts)-1].Check, "the client has not come to its end")
	if t.Failed() {
		t.Logf("stderr: %s", v.stderr)
	}
}

// verdict is a line that a client prints.
type verdict struct {
	Client string `json:"client"`
	Era    string `json:"era"`
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Millis int    `json:"ms"`
}

// runClient runs a client and returns its verdicts and its stderr. An exit status that
// contradicts the verdicts is an error.
func runClient(ctx context.Context, args []string) (verdicts []verdict, log string, err error) {
	var stdout, stderr strings.Builder
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = 10 * time.Second // for a server that outlives it
	err = command.Run()

	failed := false
	decoder := json.NewDecoder(strings.NewReader(stdout.String()))
	for decoder.More() {
		var v verdict
		if err := decoder.Decode(&v); err != nil {
			return nil, "", fmt.Errorf("%w; stdout: %s; stderr: %s", err, &stdout, &stderr)
		}
		failed = failed || !v.OK
		verdicts = append(verdicts, v)
	}
	var exit *exec.ExitError
	status := 0
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		status = -1
	}
	if len(verdicts) == 0 || failed && status != 1 || !failed && status != 0 {
		return nil, "", fmt.Errorf("%w; exit status %d; stdout: %s; stderr: %s", err, status, &stdout, &stderr)
	}
	return verdicts, stderr.String(), nil
}
