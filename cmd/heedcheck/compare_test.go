package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heedmcp/heed/transport/transporttest"
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

// A page says what is broken, what was not judged, and what the rules mean.
func TestCompareAsPage(t *testing.T) {
	status, out, errs := compared(t, "page")
	require.Equal(t, exitOK, status, out+errs)
	assert.Contains(t, out, `| rule | level | Good \| one | Web |`)
	assert.Contains(t, out, "### Web\n\n- Nothing.")
	assert.Contains(t, out, "| late-cancel | SHOULD | basic/utilities/cancellation | a cancel for a request")
}

func TestPageMergesSettings(t *testing.T) {
	verdict := func(setting string, status transporttest.Status, reason string) reported {
		return reported{Setting: setting, Rule: "one_rule", Status: status, Reason: reason}
	}
	r := &report{Server: "S", Counts: map[string]int{}, Verdicts: []reported{
		verdict("a", transporttest.Fail, "is late"), verdict("b", transporttest.Fail, "is late"), verdict("c", transporttest.Error, "is lost"),
		verdict("d", transporttest.Skip, "no tool"), verdict("e", transporttest.Skip, "no tool"),
	}}
	var b strings.Builder
	require.NoError(t, writePage(&b, nil, []*report{r}))
	assert.Contains(t, b.String(), "- **one\\_rule** (a, b): is late\n- **one\\_rule** (c): could not be tried: is lost\n")
	assert.Contains(t, b.String(), "- S: no tool (one_rule)\n")
}

// Entries under one name are one server.
func TestCompareJoinsEntries(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	base := &options{era: "both", parallel: 4}
	require.NoError(t, base.choose("^late-cancel$", "QoI", false))
	good := serverConfig{Name: "Good", Stdio: []string{program}, Env: []string{serverMode + "=good"}, Era: "handshake"}
	other := good
	other.Era = "stateless"
	last := good
	last.Name = "Last"
	var errs bytes.Buffer
	reports, status := (&config{Servers: []serverConfig{good, other, last}}).try(t.Context(), base, &errs)
	require.Equal(t, exitOK, status, errs.String())
	require.Len(t, reports, 2)
	assert.Equal(t, "Good", reports[0].Server)
	assert.Equal(t, 2, reports[0].Counts["pass"])
	assert.Equal(t, 1, reports[1].Counts["pass"])
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
		`{"servers":[{"name":"x","url":"nowhere"}]}`, `{"servers":[{"name":"x","stdio":["x"],"era":"stone"}]}`,
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
		"–": {}, "not judged": {skip: 2}, "yes": {pass: 1, skip: 1}, "no": {fail: 2}, "no in 1 of 3": {pass: 2, fail: 1, lost: 1},
		"not tried": {skip: 1, lost: 2},
	} {
		assert.Equal(t, want, c.String())
	}
}
