package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	someKills  = 24 // in make test; KILLS changes it
	killsEach  = 12 // on one database, each during an operation of its own
	killWithin = 250 * time.Millisecond
)

// kills is how many processes are to be killed.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("KILLS")
	if text == "" {
		return someKills
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "KILLS")
	return n
}

// killAll kills that many processes, on each kind of database: a dozen on one, then on another.
func killAll(t *testing.T, round func(t *testing.T, where string)) {
	onEachKind(t, func(t *testing.T, place func(*testing.T) string) {
		for done := 0; done < kills(t); done += killsEach {
			if !t.Run(fmt.Sprintf("%d", done), func(t *testing.T) { round(t, place(t)) }) {
				return
			}
		}
	})
}

func operation(n int) string { return fmt.Sprintf("op-%d", n) }

func jobOf(n int) map[string]any {
	return map[string]any{"operation_id": operation(n), "batch": 5, "delay": "5ms"}
}

// Servers are killed at random times, whatever they are doing. Each batch that was committed is in
// the ledger, with all that belongs to it; and once the operations were retried each
// posting was closed once and each applicant notified once.
func TestKilledServers(t *testing.T) { killAll(t, killServers) }

func killServers(t *testing.T, where string) {
	db := openTest(t, where)
	fillTest(t, db, 20*killsEach)
	for n := range killsEach {
		command := program(t, "serve", "-stdio", "-db", where)
		l, err := connectStdio(t.Context(), command, func() string { return "" })
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() {
			var status Status
			failed <- l.call(t.Context(), toolCall(closeTool, jobOf(n)), &status)
		}()
		after(killWithin)
		require.NoError(t, command.Process.Kill())
		<-failed // or done: it may have been fast
		_ = l.close()
		requireAudit(t, db, false)
	}
	retryAll(t, db, where)
}

// Clients are killed at random times. Their servers notice, cancel what runs, and end.
func TestKilledClients(t *testing.T) { killAll(t, killClients) }

func killClients(t *testing.T, where string) {
	db := openTest(t, where)
	fillTest(t, db, 20*killsEach)
	for n := range killsEach {
		client := program(t)
		client.Env = append(client.Env, killedClient+"="+where, killedClient+"_JOB="+strconv.Itoa(n))
		// The server inherits it from the client: it ends when both have.
		stderr, err := client.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, client.Start())
		begun := make([]byte, 1)
		_, err = stderr.Read(begun) // the client is about to call
		require.NoError(t, err)
		after(killWithin)
		require.NoError(t, client.Process.Kill())
		rest, err := io.ReadAll(stderr) // until the server has ended
		require.NoError(t, err, "%s", rest)
		_ = client.Wait() // it was killed
		requireAudit(t, db, false)
	}
	retryAll(t, db, where)
}

// after lets up to d pass: a process is to be killed at any time.
func after(d time.Duration) { <-time.After(rand.N(d)) }

func retryAll(t *testing.T, db *database, where string) {
	t.Helper()
	l, err := connectStdio(t.Context(), program(t, "serve", "-stdio", "-db", where), func() string { return "" })
	require.NoError(t, err)
	for n := range killsEach {
		var status Status
		require.NoError(t, l.call(t.Context(), toolCall(closeTool, jobOf(n)), &status))
		assert.Equal(t, stateCompleted, status.State)
	}
	require.NoError(t, l.close())
	requireAudit(t, db, true)
}

// killedClient is set to a database for a process that is to be a client.
const killedClient = "LONGTOOL_TEST_CLIENT"

// runKilledClient calls the server that it starts, until it is killed.
func runKilledClient(where string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	n, err := strconv.Atoi(os.Getenv(killedClient + "_JOB"))
	if err != nil {
		panic(err)
	}
	server := exec.Command(self, "serve", "-stdio", "-db", where)
	server.Env = append(os.Environ(), killedClient+"=")
	server.Stderr = os.Stderr
	l, err := connectStdio(context.Background(), server, func() string { return "" })
	if err != nil {
		panic(err)
	}
	fmt.Fprint(os.Stderr, ".")
	var status Status
	_ = l.call(context.Background(), toolCall(closeTool, jobOf(n)), &status)
	select {} // until it is killed
}
