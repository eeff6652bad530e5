package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The server serves a client that never heard of the story, and a board that
// nobody filled.
func TestServe(t *testing.T) {
	t.Parallel()
	var log serverLog
	command := program(t, "serve", "-stdio", "-db", "board.db", "-postings", "40")
	command.Stderr = &log
	link, err := connectStdio(t.Context(), command, log.String)
	require.NoError(t, err)
	defer func() { require.NoError(t, link.close()) }()
	call := func(tool string, arguments map[string]any, into any) error {
		ctx, cancel := context.WithTimeout(t.Context(), surely)
		defer cancel()
		return link.call(ctx, toolCall(tool, arguments), into)
	}

	var status Status
	require.NoError(t, call(closeTool, map[string]any{"operation_id": "op"}, &status))
	require.Equal(t, stateCompleted, status.State)
	require.Equal(t, 40, status.Closed)

	var report Report
	require.NoError(t, call(statusTool, map[string]any{"operation_id": "op"}, &report))
	require.Equal(t, Report{Status: status, Stops: []Stop{}}, report)

	require.NoError(t, call(statusTool, map[string]any{"operation_id": "other"}, &report))
	require.Equal(t, Report{Status: Status{OperationID: "other", State: stateUnknown}, Stops: []Stop{}}, report)

	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{statusTool, map[string]any{"operation_id": "op", "wait": "long"}, "wait: want a duration"},
		{closeTool, map[string]any{"operation_id": "op", "delay": "long"}, "delay: want a duration"},
		{closeTool, map[string]any{"operation_id": "op", "stale_days": 7}, errMismatch.Error()},
		{closeTool, map[string]any{"operation_id": ""}, "operation_id"},
		{closeTool, map[string]any{"operation_id": "op", "batch": 0}, "batch"},
		{closeTool, map[string]any{}, "operation_id"},
	} {
		require.ErrorContains(t, call(c.tool, c.arguments, &report), c.want)
	}
	require.Empty(t, link.logged())
}

// A server that is killed in the middle of a batch leaves a whole database, and
// a retry to a new one goes on as soon as the lease of the dead one has run out.
func TestServerDies(t *testing.T) {
	t.Parallel()
	where := filepath.Join(t.TempDir(), "board.db")
	db := openTest(t, where)
	fillTest(t, db, 200) // twenty seconds' work
	start := func() (*exec.Cmd, *link) {
		command := program(t, "serve", "-stdio", "-db", where)
		l, err := connectStdio(t.Context(), command, func() string { return "" })
		require.NoError(t, err)
		return command, l
	}
	params := toolCall(closeTool, map[string]any{"operation_id": "op", "batch": 10, "delay": "1s"})
	params.SetProgressToken("call-1")

	command, l := start()
	failed := make(chan error)
	var status Status
	go func() { failed <- l.call(t.Context(), params, &status) }()
	for p := range l.progress {
		if p.phase == phaseCommitting && p.done > 10 {
			break
		}
	}
	require.NoError(t, command.Process.Kill())
	require.Error(t, <-failed)
	_ = l.close()
	requireAudit(t, db, false)
	before, err := db.status(t.Context(), "op")
	require.NoError(t, err)
	require.Positive(t, before.Batches)
	require.Less(t, before.Batches, 20)

	_, l = start()
	defer func() { require.NoError(t, l.close()) }()
	require.NoError(t, l.call(t.Context(), toolCall(closeTool, map[string]any{"operation_id": "op", "batch": 10}), &status))
	require.Equal(t, stateCompleted, status.State)
	require.Equal(t, 200, status.Closed)
	require.Equal(t, 2, status.Runs)
	requireAudit(t, db, true)
}
