package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

type line struct{ Msg, Tool, Origin, Reason, Error string }

// lines waits until the audit has so many lines.
func lines(t *testing.T, said *host.Log, n int) (all []line) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(said.String(), "\n") == n }, host.Patience, 5*time.Millisecond, "%s", said)
	decoder := json.NewDecoder(strings.NewReader(said.String()))
	for decoder.More() {
		var l line
		require.NoError(t, decoder.Decode(&l))
		all = append(all, l)
	}
	return all
}

func TestCallsAreAuditedAndLimited(t *testing.T) {
	var said host.Log
	command := host.Program(t)
	command.Stderr = &said
	session := host.Start(t, command, host.Options{})
	assert.Equal(t, "waited", session.Text("wait", map[string]any{"seconds": 0}))
	assert.Equal(t, []line{{Msg: "done", Tool: "wait"}}, lines(t, &said, 1))

	first, second := session.Begin("wait", map[string]any{"seconds": 3600}), session.Begin("wait", map[string]any{"seconds": 3600})
	first.Report()
	second.Report()
	assert.Equal(t, "too many calls at once, try again later", session.Failure("wait", map[string]any{"seconds": 0}))
	assert.Equal(t, line{Msg: "failed", Tool: "wait", Error: "too many calls at once, try again later"}, lines(t, &said, 2)[1])

	// The client hears nothing of a call that it has stopped. The audit does, and its place is free.
	first.Stop()
	assert.Equal(t, line{Msg: "stopped", Tool: "wait", Origin: "peer", Reason: "context canceled"}, lines(t, &said, 3)[2])
	assert.Equal(t, "waited", session.Text("wait", map[string]any{"seconds": 0}))

	second.Stop()
	lines(t, &said, 5)
}
