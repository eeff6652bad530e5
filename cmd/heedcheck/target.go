package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// target is a server to try, as transporttest wants it. close ends what it has started.
func (o *options) target() (t *transporttest.Target, shut func()) {
	t = &transporttest.Target{Calls: o.calls, Limits: o.limits}
	switch {
	case o.url == "":
		t.Dial = transporttest.Command(o.command, o.env)
		return t, func() {}
	case len(o.command) == 0:
		t.Open = func(context.Context) (*transporttest.Endpoint, error) {
			return &transporttest.Endpoint{URL: o.url, Header: o.header, Other: o.other}, nil
		}
		return t, func() {}
	}
	l := &launcher{command: o.command, env: o.env, url: o.url, header: o.header, other: o.other, within: o.limits.Start}
	t.Open, t.Restart = l.shared, l.own
	return t, l.close
}

// launcher starts servers that listen.
type launcher struct {
	command []string
	env     []string
	url     string
	header  http.Header
	other   http.Header
	within  time.Duration

	mu      sync.Mutex // guards the fields below
	running *started   // for all rules that do not end it
	err     error      // why there is none
	tried   bool
}

// started is a server that was started.
type started struct {
	process *wire.Process
	url     string
}

// shared is the server that most rules use.
func (l *launcher) shared(ctx context.Context) (*transporttest.Endpoint, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != nil {
		select {
		case <-l.running.process.Exited(): // a rule has brought it down; the next is not to suffer for it
			l.running.process.Kill()
			l.running, l.tried = nil, false
		default:
		}
	}
	if !l.tried {
		l.running, l.err = l.start(ctx)
		l.tried = true
	}
	if l.err != nil {
		return nil, l.err
	}
	return &transporttest.Endpoint{URL: l.running.url, Header: l.header, Other: l.other}, nil
}

// own is a server for one rule.
func (l *launcher) own(ctx context.Context) (*transporttest.Endpoint, error) {
	s, err := l.start(ctx)
	if err != nil {
		return nil, err
	}
	return &transporttest.Endpoint{URL: s.url, Header: l.header, Other: l.other, Life: transporttest.ProcessLife(s.process)}, nil
}

// errPortTaken is why a server may have ended that was given a port which somebody else,
// such as a client of another server, has taken meanwhile.
var errPortTaken = errors.New("its port is taken")

var portTaken = regexp.MustCompile(`(?i)address.*in use|EADDRINUSE`)

// start starts a server and waits until it listens.
func (l *launcher) start(ctx context.Context) (s *started, err error) {
	for range 3 {
		if s, err = l.startOnce(ctx); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return s, err
}

func (l *launcher) startOnce(ctx context.Context) (*started, error) {
	addr, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	fill := strings.NewReplacer("{addr}", addr, "{port}", port)
	var command []string
	for _, arg := range l.command {
		command = append(command, fill.Replace(arg))
	}
	s := &started{url: fill.Replace(l.url)}
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	if s.process, err = wire.Start(command, l.env); err != nil {
		return nil, err
	}
	go discard(s.process)
	if err := s.listening(ctx, u, l.within); err != nil {
		s.process.Kill()
		return nil, err
	}
	return s, nil
}

// discard reads what a server prints that does not talk on stdout.
func discard(p *wire.Process) {
	buffer := make([]byte, 4096)
	for {
		if _, err := p.Stdout.Read(buffer); err != nil {
			return
		}
	}
}

// freeAddress is one on which nobody listens at this moment.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// listening waits until the server takes connections.
func (s *started) listening(ctx context.Context, u *url.URL, within time.Duration) error {
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	until := time.Now().Add(within)
	patience := wire.Patience{Limit: within}
	dialer := net.Dialer{Timeout: within}
	for {
		connection, err := dialer.DialContext(ctx, "tcp", host)
		if err == nil {
			_ = connection.Close() // only that it opened matters
		}
		select {
		case <-s.process.Exited(): // then it is somebody else who listens, if anybody does
			return s.ended()
		default:
		}
		if err == nil {
			return nil
		}
		if time.Now().After(until) {
			more := patience.Next()
			if more <= 0 {
				return fmt.Errorf("the server does not listen on %s within %s", host, within)
			}
			until = time.Now().Add(more)
		}
		select {
		case <-ticker.C:
		case <-s.process.Exited():
		case <-ctx.Done():
			return fmt.Errorf("the server does not listen on %s: %w", host, context.Cause(ctx))
		}
	}
}

// ended says how a server has ended that should listen.
func (s *started) ended() error {
	_, text := s.process.Status()
	words := s.process.Stderr()
	if portTaken.MatchString(words) {
		return fmt.Errorf("the server has ended (%s), %w: %.300q", text, errPortTaken, words)
	}
	return fmt.Errorf("the server has ended (%s): %.300q", text, words)
}

func (l *launcher) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != nil {
		l.running.process.Kill()
	}
}
