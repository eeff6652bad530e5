package bubble

import (
	"context"
	"net"
	"sync"
)

// Listener is a net.Listener whose connections are pipes in memory: with it HTTP works in a
// bubble, where a socket would keep the time from passing. Its methods may be called from
// any goroutine.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{} // closed by Close
	once   sync.Once
}

// Listen returns an open Listener. It belongs to the bubble that it is made in.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the other end of the next Dial, and net.ErrClosed once l is closed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial; connections stay as they are. It returns nil.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that says no more than that it is in memory.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

// Dial connects to whoever accepts, whatever network and address say: it is an
// http.Transport's DialContext. It returns an error when l is closed or ctx ends first.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
