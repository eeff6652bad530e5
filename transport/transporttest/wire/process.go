package wire

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Process is a server in a process of its own, and with it in a process group.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader

	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr tail
	exited chan struct{} // closed when the process has ended and was waited for
	state  *os.ProcessState
	once   sync.Once
}

// killWait is how long a killed process's output may be held open by others.
const killWait = time.Second

// Start starts a command. env is added to the environment.
func Start(command, env []string) (*Process, error) {
	if len(command) == 0 {
		return nil, errors.New("no command")
	}
	p := &Process{cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{})} // ended by Kill
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = killWait
	isolate(p.cmd)
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), stdin.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout = in, out
	err = p.cmd.Start()
	_, _ = in.Close(), out.Close() // the child's
	if err != nil {
		_, _ = stdin.Close(), stdout.Close()
		return nil, err
	}
	p.stdin, p.stdout, p.Stdin, p.Stdout = stdin, stdout, stdin, stdout
	go func() {
		_ = p.cmd.Wait() // the state says how it went
		p.state = p.cmd.ProcessState
		close(p.exited)
	}()
	return p, nil
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Status says how the process has ended, once Exited is closed: its exit status, -1 after
// a signal, and that in words.
func (p *Process) Status() (int, string) { return p.state.ExitCode(), p.state.String() }

// Signal sends a signal to the process, but not to its group.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Stderr is the end of what the process has written to its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Kill kills what is left of the process group and waits for the process. It may be called
// more than once.
func (p *Process) Kill() {
	p.once.Do(func() {
		killGroup(p.cmd)
		<-p.exited
		_, _ = p.stdin.Close(), p.stdout.Close()
	})
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	if over := len(t.text) - maxTail; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
