package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compared runs compare with two servers of this test's program.
func compared(t *testing.T, format string) (status int, stdout, stderr string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(config{Servers: []serverConfig{
		{Name: "Good | one", Stdio: []string{program}, Env: []string{serverMode + "=good"}},
		{Name: "Web", HTTP: []string{program, "{addr}"}, URL: "http://{addr}/", Env: []string{serverMode + "=http"}},
	}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	var out, errs bytes.Buffer
	status = run(t.Context(), []string{"compare", "-config", file, "-format", format, "-era", "handshake", "-run", "^(late-cancel|eof-idle|session-gone)$"}, &out, &errs)
	return status, out.String(), errs.String()
}

func TestCompareInMarkdown(t *testing.T) {
	status, out, errs := compared(t, "markdown")
	require.Equal(t, exitOK, status, out+errs)
	assert.Contains(t, out, `| rule | level | Good \| one | Web |`)
	assert.Contains(t, out, "| late-cancel | SHOULD | yes | yes |")
	assert.Contains(t, out, "| eof-idle | SHOULD | yes | – |")
	assert.Contains(t, out, "| session-gone | MUST | – | yes |")
	assert.Contains(t, errs, "Web: 4 passed, 0 failed")
}

func TestCompareAsText(t *testing.T) {
	status, out, _ := compared(t, "text")
	require.Equal(t, exitOK, status, out)
	fields := strings.Fields(strings.Split(out, "\n")[1])
	assert.Equal(t, []string{"late-cancel", "SHOULD", "yes", "yes"}, fields)
}

func TestCompareAsJSON(t *testing.T) {
	status, out, _ := compared(t, "json")
	require.Equal(t, exitOK, status, out)
	var reports []struct {
		Server string         `json:"server"`
		Counts map[string]int `json:"counts"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &reports))
	require.Len(t, reports, 2)
	assert.Equal(t, "Good | one", reports[0].Server)
	assert.Equal(t, 4, reports[1].Counts["pass"])
}

func TestCompareRefusesWrongFiles(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `{"servers":[]}`, `{"servers":[{"nam":"x"}]}`, `{"servers":[{"name":"x"}]}`,
		`{"servers":[{"name":"x","stdio":["x"],"tool":"t","args":[1]}]}`, `{"servers":[{"name":"x","stdio":["x"],"nested":{"pizza":"y"}}]}`,
		`{"servers":[{"name":"x","url":"nowhere"}]}`,
	} {
		file := filepath.Join(t.TempDir(), "servers.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		var out, errs bytes.Buffer
		assert.Equal(t, exitUsage, run(t.Context(), []string{"compare", "-config", file}, &out, &errs), text)
		assert.NotEmpty(t, errs.String(), text)
	}
}

func TestCellsSayHowMuchIsKept(t *testing.T) {
	for want, c := range map[string]cell{
		"–": {}, "not judged": {skip: 2}, "yes": {pass: 1, skip: 1}, "no": {fail: 2}, "no in 1 of 3": {pass: 2, fail: 1},
	} {
		assert.Equal(t, want, c.String())
	}
}
