package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startWithin = time.Minute     // for the server to open its database and to listen
	stopWithin  = 5 * time.Second // to end, beyond what it gives itself
)

// A process is this program, started as an HTTP server.
type process struct {
	command *exec.Cmd
	log     serverLog
	exited  chan struct{} // closed when the process is gone
	err     error         // how it ended; written before exited is closed
}

// startServer starts a server on a port that is free, and returns when it listens.
func startServer(ctx context.Context, where string) (*process, *url.URL, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	p := &process{
		command: exec.Command(self, "serve", "-http", "127.0.0.1:0", "-db", where),
		log:     serverLog{listening: make(chan string, 1)},
		exited:  make(chan struct{}),
	}
	p.command.Stderr = &p.log
	tie(p.command)
	if err := p.command.Start(); err != nil {
		return nil, nil, err
	}
	go func() {
		p.err = p.command.Wait()
		close(p.exited)
	}()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	select {
	case endpoint := <-p.log.listening:
		u, err := url.Parse(endpoint)
		if err != nil {
			return nil, nil, errors.Join(err, p.stop())
		}
		return p, u, nil
	case <-p.exited:
		return nil, nil, fmt.Errorf("the server did not start: %s", strings.TrimSpace(p.log.String()))
	case <-ctx.Done():
		return nil, nil, errors.Join(fmt.Errorf("the server did not start: %w", ctx.Err()), p.stop())
	}
}

// stop asks the process to end, and waits until it has. Where processes cannot
// be asked it is killed.
func (p *process) stop() error {
	killed := false
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		killed = p.command.Process.Kill() == nil
	}
	select {
	case <-p.exited:
	case <-time.After(shutdownWithin + stopWithin):
		_ = p.command.Process.Kill()
		<-p.exited
	}
	if killed {
		return nil
	}
	return p.err
}

// kill ends the process without asking, as a crash does.
func (p *process) kill() error {
	err := p.command.Process.Kill()
	<-p.exited
	return err
}

// A serverLog takes what a server prints for people. The line that says where
// it listens goes to the channel, if there is one, and not into the log.
type serverLog struct {
	listening chan string

	mu     sync.Mutex
	buffer bytes.Buffer
	found  bool
}

func (b *serverLog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffer.Write(p)
	if b.listening == nil || b.found {
		return len(p), nil
	}
	before, after, _ := strings.Cut(b.buffer.String(), listening)
	if where, rest, whole := strings.Cut(after, "\n"); whole {
		b.found = true
		b.buffer.Reset()
		b.buffer.WriteString(before + rest)
		b.listening <- where
	}
	return len(p), nil
}

func (b *serverLog) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
