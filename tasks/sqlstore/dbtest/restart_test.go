package dbtest_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/tasks/sqlstore"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// A server in a process of its own: this test binary, started again with the path of a
// database in this variable. It serves stdin and stdout.
const asServer = "HEED_TEST_DATABASE"

// How long each step takes, in this variable: servers that are to be stopped in the middle of a
// job work slowly.
const (
	pace   = "HEED_TEST_PACE"
	slowly = "1s"
	fast   = "1ms"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(asServer); path != "" {
		step, err := time.ParseDuration(os.Getenv(pace))
		if err == nil {
			err = serve(path, step)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func openSQLite(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)")
}

func serve(path string, step time.Duration) error {
	ctx := context.Background()
	db, err := openSQLite(path)
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
	if err != nil {
		return err
	}
	if _, err := db.Exec(`create table if not exists steps (operation text, step integer, primary key (operation, step))`); err != nil {
		return err
	}
	s := server.New(&mcp.Implementation{Name: "restart", Version: "1"}, &server.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), DrainGrace: -1,
	})
	m, err := tasks.Enable(s, &tasks.Options{Store: store, Owner: "the one", SaveEvery: time.Millisecond})
	if err != nil {
		return err
	}
	defer m.Close()
	// Each step is done once per operation, whatever happens to the process.
	job := func(ctx context.Context, req *servercontext.Request, in struct {
		Steps int `json:"steps"`
	}) (string, error) {
		task, ok := tasks.FromContext(ctx)
		if !ok {
			return "", errors.New("this will be no task")
		}
		done := 0
		if err := db.QueryRowContext(ctx, `select count(*) from steps where operation = $1`, task.ID()).Scan(&done); err != nil {
			return "", err
		}
		began := done
		for ; done < in.Steps; done++ {
			if err := cancellation.Checkpoint(ctx); err != nil {
				return "", err
			}
			if _, err := db.ExecContext(ctx, `insert into steps values ($1, $2)`, task.ID(), done); err != nil {
				return "", err
			}
			if err := req.Progress(ctx, float64(done+1), float64(in.Steps), "step"); err != nil {
				return "", err
			}
			select {
			case <-time.After(step):
			case <-ctx.Done():
			}
		}
		return fmt.Sprintf("run %d went on at %d", task.Run(), began), nil
	}
	resume := tasks.Tool(tasks.ToolOptions{Support: tasks.Always, After: -1, OnRestart: tasks.Resume})
	fail := tasks.Tool(tasks.ToolOptions{Support: tasks.Always, After: -1})
	if err := errors.Join(
		server.AddTool(s, &mcp.Tool{Name: "resumes"}, job, resume),
		server.AddTool(s, &mcp.Tool{Name: "fails"}, job, fail),
	); err != nil {
		return err
	}
	if _, _, err := m.Recover(ctx); err != nil {
		return err
	}
	if err := stdio.Serve(ctx, s, nil); err != nil {
		return err
	}
	deadline, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.Drain(deadline)
}

// process is a client of such a server.
type process struct {
	t       *testing.T
	command *exec.Cmd
	stdin   io.WriteCloser
	lines   *bufio.Scanner
	lastID  int
}

func start(t *testing.T, path, step string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, command: exec.CommandContext(t.Context(), self)}
	p.command.Env = append(os.Environ(), asServer+"="+path, pace+"="+step)
	p.command.Stderr = os.Stderr
	p.stdin, err = p.command.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.command.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(stdout)
	require.NoError(t, p.command.Start())
	return p
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Kill())
	_ = p.stdin.Close()
	require.Error(p.t, p.command.Wait())
}

// end ends it as its client does who is done.
func (p *process) end() {
	p.t.Helper()
	require.NoError(p.t, p.stdin.Close())
	require.NoError(p.t, p.command.Wait())
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (p *process) request(method string, params map[string]any) json.RawMessage {
	p.t.Helper()
	p.lastID++
	params["_meta"] = map[string]any{
		mcp.MetaKeyProtocolVersion:    server.Version20260728,
		mcp.MetaKeyClientCapabilities: map[string]any{"extensions": map[string]any{tasks.ID: map[string]any{}}},
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.lastID, "method": method, "params": params})
	require.NoError(p.t, err)
	_, err = p.stdin.Write(append(line, '\n'))
	require.NoError(p.t, err)
	require.True(p.t, p.lines.Scan(), "the server is gone")
	var a answer
	require.NoError(p.t, json.Unmarshal(p.lines.Bytes(), &a))
	require.Empty(p.t, a.Error)
	return a.Result
}

type view struct {
	TaskID        string
	Status        string
	StatusMessage string
	Result        struct {
		Content []struct{ Text string }
		IsError bool
	}
	Error *struct{ Message string }
}

func (p *process) begin(tool string, steps int) string {
	p.t.Helper()
	var v view
	raw := p.request("tools/call", map[string]any{"name": tool, "arguments": map[string]any{"steps": steps}})
	require.NoError(p.t, json.Unmarshal(raw, &v))
	require.NotEmpty(p.t, v.TaskID, string(raw))
	return v.TaskID
}

func (p *process) get(id string) (v view) {
	p.t.Helper()
	require.NoError(p.t, json.Unmarshal(p.request("tasks/get", map[string]any{"taskId": id}), &v))
	return v
}

// until asks for the task until it is as wanted.
func (p *process) until(id string, wanted func(view) bool) (v view) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { v = p.get(id); return wanted(v) }, 2*time.Minute, 5*time.Millisecond)
	return v
}

func hasEnded(v view) bool {
	return v.Status == "completed" || v.Status == "failed" || v.Status == "cancelled"
}

// A task begins in one process, is gone on with in a second one after the first was
// killed, in a third one after the second was shut down, and can be stopped in a fourth.
func TestTasksSurviveTheirProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first := start(t, path, slowly)
	job, other, lost := first.begin("resumes", 300), first.begin("resumes", 1_000_000), first.begin("fails", 1_000_000)
	atWork := func(v view) bool { return v.StatusMessage != "" && v.Status == "working" }
	for _, id := range []string{job, other, lost} {
		first.until(id, atWork)
	}
	first.kill()

	second := start(t, path, slowly)
	v := second.get(lost)
	assert.Equal(t, "failed", v.Status)
	assert.Equal(t, "the server was restarted while the task was running", v.Error.Message)
	assert.Equal(t, "working", second.get(job).Status)
	second.until(job, atWork)
	second.end()

	third := start(t, path, fast)
	v = third.until(job, hasEnded)
	assert.Equal(t, "completed", v.Status)
	assert.Regexp(t, `^run 3 went on at [1-9]`, v.Result.Content[0].Text)
	third.kill()

	fourth := start(t, path, fast)
	assert.Equal(t, v, fourth.get(job), "what has ended stays as it was")
	fourth.until(other, atWork)
	fourth.request("tasks/cancel", map[string]any{"taskId": other})
	assert.Equal(t, "cancelled", fourth.until(other, hasEnded).Status)
	fourth.end()

	db, err := openSQLite(path)
	require.NoError(t, err)
	defer db.Close()
	var steps int
	require.NoError(t, db.QueryRow(`select count(*) from steps where operation = $1`, job).Scan(&steps))
	assert.Equal(t, 300, steps, "each step was done once")
}
