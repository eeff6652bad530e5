package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// Whoever does not know tasks waits, and can cancel.
func TestWithoutTasks(t *testing.T) {
	var said host.Log
	command := host.Program(t)
	command.Stderr = &said
	session := host.Start(t, command, host.Options{})
	assert.Equal(t, "built 5 shards", session.Text("reindex", map[string]any{"shards": 5}))
	call := session.Begin("reindex", map[string]any{"shards": 1000})
	call.Report()
	call.Stop()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "stopped at shard") }, host.Patience, 5*time.Millisecond)
}

// client is one that knows tasks; the official Go SDK's does not.
type client struct {
	t     *testing.T
	stdin io.Writer
	lines *bufio.Scanner
	id    int
}

type outcome struct {
	ResultType, TaskID, Status, StatusMessage string
	Content                                   []struct{ Text string }
	Result                                    struct{ Content []struct{ Text string } }
}

// request sends a request and returns its result.
func (c *client) request(method string, params map[string]any) (result outcome) {
	c.t.Helper()
	c.id++
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`),
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	require.NoError(c.t, err)
	_, err = c.stdin.Write(append(line, '\n'))
	require.NoError(c.t, err)
	for c.lines.Scan() {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		require.NoError(c.t, json.Unmarshal(c.lines.Bytes(), &answer))
		if answer.ID == c.id {
			require.Empty(c.t, string(answer.Error))
			require.NoError(c.t, json.Unmarshal(answer.Result, &result))
			return result
		}
	}
	require.Fail(c.t, "the program has ended")
	return result
}

// get asks for a task until it has the status.
func (c *client) get(id, status string) (task outcome) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		task = c.request("tasks/get", map[string]any{"taskId": id})
		return task.Status == status
	}, host.Patience, 10*time.Millisecond, "the task is not %s", status)
	return task
}

func TestCallsBecomeTasks(t *testing.T) {
	var said host.Log
	command := host.Program(t)
	command.Stderr = &said
	stdin, err := command.StdinPipe()
	require.NoError(t, err)
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	c := &client{t: t, stdin: stdin, lines: bufio.NewScanner(stdout)}
	reindex := func(shards int) outcome {
		return c.request("tools/call", map[string]any{"name": "reindex", "arguments": map[string]any{"shards": shards}})
	}

	quick := reindex(1)
	require.Len(t, quick.Content, 1, "what is done in a moment is answered at once")
	assert.Equal(t, "built 1 shards", quick.Content[0].Text)

	done := reindex(5)
	require.Equal(t, "task", done.ResultType)
	assert.Equal(t, "built 5 shards", c.get(done.TaskID, "completed").Result.Content[0].Text)

	long := reindex(1000)
	require.Equal(t, "task", long.ResultType)
	assert.Regexp(t, `shard \d`, c.get(long.TaskID, "working").StatusMessage)
	assert.Empty(t, said.String())
	c.request("tasks/cancel", map[string]any{"taskId": long.TaskID})
	c.get(long.TaskID, "cancelled")
	// It is not reported as cancelled before its handler has returned.
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "\n") }, host.Patience, 5*time.Millisecond)
	assert.Regexp(t, `\Astopped at shard \d+: cancelled[^\n]*\n\z`, said.String())

	require.NoError(t, stdin.Close())
	require.False(t, c.lines.Scan())
	require.NoError(t, command.Wait())
}
