package main

import (
	"testing"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/stretchr/testify/assert"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// A call that is stopped is not heard of again, its handler is gone, and the session goes on.
func TestCountdownStops(t *testing.T) {
	var said host.Log
	command := host.Program(t)
	command.Stderr = &said
	session := host.Start(t, command, host.Options{})

	call := session.Begin("countdown", map[string]any{"from": 60})
	assert.Zero(t, call.Report().Progress)
	assert.Equal(t, 1.0, call.Report().Progress)
	call.Stop()
	// It looks once a second, so that it has looked when another call has counted two.
	assert.Equal(t, "counted 2 seconds", session.Text("countdown", map[string]any{"from": 2}))

	stacks := session.Dump(command, &said)
	assert.Contains(t, stacks, "main.main(")
	assert.NotContains(t, stacks, "main.main.func1(", "the handler still runs")
}
