//go:build unix

package stdio_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// process is a server in a process of its own.
type process struct {
	*client
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	out    *os.File // the client's end of its output
}

// start starts a server. prepare may change how.
func start(t *testing.T, mode string, prepare func(*exec.Cmd)) *process {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(exe), stderr: &bytes.Buffer{}}
	// The race detector would keep the process for a second after its end.
	p.cmd.Env = append(os.Environ(), serverMode+"="+mode+" server", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = p.stderr
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdout = w
	if prepare != nil {
		prepare(p.cmd)
	}
	require.NoError(t, p.cmd.Start())
	w.Close()
	p.out = r
	p.client = newClient(t, in)
	go p.read(r)
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		r.Close()
	})
	return p
}

// wait waits for the process's end and returns its exit status.
func (p *process) wait() int {
	p.t.Helper()
	tooLong := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	defer tooLong.Stop()
	_ = p.cmd.Wait() // an exit status is no surprise
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(p.t, status.Exited(), "%v: %s", p.cmd.ProcessState, p.stderr)
	return status.ExitStatus()
}

// worked is how long the process has kept a processor busy. It has ended.
func (p *process) worked() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// begun waits until n handlers have begun. That a later request was answered would only
// tell that their calls were read.
func (p *process) begun(n int) {
	p.t.Helper()
	for {
		p.call(`"begun"`, "begun", "")
		if p.answer(`"begun"`).text() == strconv.Itoa(n) {
			return
		}
	}
}

func TestCase37_ProcessEndsWithItsInput(t *testing.T) {
	const limit, attempts = 100 * time.Millisecond, 20
	end := func(p *process) time.Duration {
		begun := time.Now()
		require.NoError(t, p.w.Close())
		require.Zero(t, p.wait(), p.stderr)
		took := time.Since(begun)
		assert.Empty(t, p.rest())
		return took
	}
	// The machine may be busy with other things: a program that does nothing takes its time, too.
	best, bare := time.Hour, time.Hour
	for range attempts {
		p := start(t, "", nil)
		p.initialize()
		p.echo(1)
		best = min(best, end(p))
		bare = min(bare, end(start(t, "bare", nil)))
		if best < limit {
			break
		}
	}
	assert.Less(t, best, limit+bare)
}

func TestCase37_ProcessEndsWhateverHandlersDo(t *testing.T) {
	p := start(t, "hasty", nil)
	p.initialize()
	p.call(1, "ignore", "")
	p.call(2, "wait", "")
	p.begun(2)
	require.NoError(t, p.w.Close())
	assert.Equal(t, 1, p.wait())
	assert.Contains(t, p.stderr.String(), "handlers are still running")
	assert.Empty(t, p.rest())

	quick := start(t, "", nil)
	quick.initialize()
	quick.echo(1)
	require.NoError(t, quick.w.Close())
	require.Zero(t, quick.wait(), quick.stderr)
	assert.Less(t, p.worked(), 2*quick.worked()+500*time.Millisecond, "it does not spin while it waits")
}

func TestCase38_CancelDirectlyBeforeTheEnd(t *testing.T) {
	for name, end := range map[string]func(p *process){
		"end of input": func(p *process) { require.NoError(p.t, p.w.Close()) },
		"SIGINT":       func(p *process) { p.signal(os.Interrupt) },
		"SIGTERM":      func(p *process) { p.signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				p := start(t, "", nil)
				p.initialize()
				p.call(1, "wait", "")
				p.begun(1)
				p.cancel(1)
				end(p)
				require.Zero(t, p.wait(), p.stderr)
				for _, m := range p.rest() { // none is partial
					if name == "end of input" {
						require.Fail(t, "written", m.raw)
					}
					require.NotNil(t, m.Result, "the signal may have come before the cancel was read")
				}
			}
		})
	}
}

func TestCase39_SignalsEndTheProcess(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := start(t, "hasty", nil)
		p.initialize()
		p.call(1, "wait", "")
		p.begun(1)
		p.signal(sig)
		require.Zero(t, p.wait(), p.stderr)
		m := p.answer(1)
		assert.Contains(t, m.text(), sig.String())
		assert.Empty(t, p.rest())
	}
}

func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	p := start(t, "patient", nil)
	p.initialize()
	p.call(1, "ignore", "")
	p.begun(1)
	p.signal(os.Interrupt)
	for refused := false; !refused; { // until the first has been seen
		p.call(2, "echo", "")
		refused = p.answer(2).Error != nil
	}
	p.signal(os.Interrupt)
	assert.Equal(t, 1, p.wait())
	assert.True(t, p.answer(1).Result.IsError)
	assert.Empty(t, p.rest())
}

func TestStrayOutputDoesNotReachTheClient(t *testing.T) {
	p := start(t, "says", nil)
	p.initialize()
	for i := range 5 {
		p.call(i, "stray", `"text":"hello"`)
		require.Equal(t, "hello", p.answer(i).text())
	}
	require.NoError(t, p.w.Close())
	line, err := p.take()
	require.NoError(t, err)
	assert.Equal(t, "STRAY after\n", line, "descriptor 1 was put back")
	require.Zero(t, p.wait())
	for _, stray := range []string{"STRAY print", "STRAY descriptor", "STRAY child"} {
		assert.Equal(t, 5, strings.Count(p.stderr.String(), stray), p.stderr)
	}
}

func TestStrayOutputVanishesIfBothOutputsAreOne(t *testing.T) {
	p := start(t, "", func(cmd *exec.Cmd) { cmd.Stderr = cmd.Stdout })
	p.initialize()
	p.call(1, "stray", `"text":"hello"`)
	require.Equal(t, "hello", p.answer(1).text())
	require.NoError(t, p.w.Close())
	require.Zero(t, p.wait())
	assert.Empty(t, p.rest())
}

func TestClientThatDiesTakesBothOutputsAlong(t *testing.T) {
	errR, errW, err := os.Pipe()
	require.NoError(t, err)
	p := start(t, "hasty mute", func(cmd *exec.Cmd) { cmd.Stderr = errW })
	errW.Close()
	p.initialize()
	p.call(1, "wait", "")
	p.begun(1)
	errR.Close()
	p.out.Close()
	p.call(2, "stray", "") // writes to descriptor 2, which must not kill the process
	assert.Equal(t, 1, p.wait(), "the answer could not be written")
}

func TestBrokenPipeIsADisconnect(t *testing.T) {
	p := start(t, "hasty", nil)
	p.initialize()
	p.call(1, "wait", "")
	p.begun(1)
	p.out.Close()
	p.line(`no message`)
	assert.Equal(t, 1, p.wait())
	assert.Contains(t, p.stderr.String(), "broken pipe")
}

func TestServeFiles(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	require.NoError(t, os.WriteFile(in, []byte(fmt.Sprintf(initializeLine, "2025-11-25")+"\nno message"), 0o600))
	input, err := os.Open(in)
	require.NoError(t, err)
	defer input.Close()
	output, err := os.Create(filepath.Join(dir, "out"))
	require.NoError(t, err)
	defer output.Close()
	p := start(t, "", func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = input, output })
	require.Zero(t, p.wait(), p.stderr)
	text, err := os.ReadFile(output.Name())
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], `"protocolVersion":"2025-11-25"`)
	assert.Contains(t, lines[1], `-32700`)
}

// A server that collects garbage all the time must not freeze, as it did for a minute (or for good) when
// it read with blocking reads. Set HEED_STEADY_LOAD to a duration for a longer run.
func TestCase56_NoPauseUnderSteadyLoad(t *testing.T) {
	length := 3 * time.Second
	if s := os.Getenv("HEED_STEADY_LOAD"); s != "" {
		var err error
		length, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	p := start(t, "collects", nil)
	p.initialize()
	late := lateness(t)
	worst := time.Duration(0)
	rounds := 0
	for begun := time.Now(); time.Since(begun) < length || rounds < 100; rounds++ {
		sent := time.Now()
		p.echo(rounds)
		worst = max(worst, time.Since(sent))
	}
	t.Logf("the slowest of %d round trips took %v", rounds, worst)
	assert.Less(t, worst, 500*time.Millisecond+10*late(), "as late as the machine is busy, and no later")
	require.NoError(t, p.w.Close())
	require.Zero(t, p.wait())
}

// lateness measures how late this machine does what is due, from now until the function that
// it returns is called, which tells the worst.
func lateness(t *testing.T) (worst func() time.Duration) {
	const every = 5 * time.Millisecond
	stop, told := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		for {
			due := time.Now().Add(every)
			select {
			case <-time.After(every):
				most = max(most, time.Since(due))
			case <-stop:
				told <- most
				return
			}
		}
	}()
	stopped := sync.OnceValue(func() time.Duration { close(stop); return <-told })
	t.Cleanup(func() { stopped() })
	return stopped
}

func TestLargeMessagesBothWays(t *testing.T) {
	p := start(t, "", nil)
	p.initialize()
	text := strings.Repeat("x", 1<<20)
	for i := range 2 {
		var wrote sync.WaitGroup
		wrote.Go(func() { p.call(i, "echo", `"text":"`+text+`"`) })
		assert.Equal(t, len(text), len(p.answer(i).text()))
		wrote.Wait()
	}
	require.NoError(t, p.w.Close())
	require.Zero(t, p.wait())
}
