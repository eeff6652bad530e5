package gosdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/heedmcp/heed/server"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxQueued bounds the messages that wait to be written; whoever has a further
	// one waits.
	maxQueued = 256
	// writeTimeout is how long the peer may take to accept a message.
	writeTimeout = 30 * time.Second
)

// ErrStalled is returned by [Serve] when the peer did not take a message for 30
// seconds.
var ErrStalled = errors.New("gosdk: the peer does not read")

var errLinkClosed = errors.New("gosdk: the connection is closed")

// link carries a session's messages over a connection of the official SDK. One
// goroutine reads, one writes.
type link struct {
	conn    mcp.Connection
	log     *slog.Logger
	session *server.Session // set before the goroutines start

	queue   chan []byte
	closing chan struct{} // closed by finish: no more messages
	drained chan struct{} // closed by write when the queue is empty after closing
	failed  chan struct{} // closed by fail
	written chan struct{} // closed when the writing goroutine has ended
	ended   chan struct{} // closed when the reading goroutine has ended

	readErr error // why reading ended, nil when the peer is gone; written before ended is closed

	mu  sync.Mutex
	err error // why writing failed; set once, by fail
}

func newLink(conn mcp.Connection, log *slog.Logger) *link {
	return &link{
		conn: conn, log: log,
		queue:   make(chan []byte, maxQueued),
		closing: make(chan struct{}),
		drained: make(chan struct{}),
		failed:  make(chan struct{}),
		written: make(chan struct{}),
		ended:   make(chan struct{}),
	}
}

// read gives the session what comes in, until the connection ends.
func (l *link) read(ctx context.Context) {
	defer close(l.ended)
	for {
		m, err := l.conn.Read(ctx)
		if err != nil {
			if !isGone(err) {
				l.readErr = fmt.Errorf("gosdk: read: %w", err)
			}
			return
		}
		raw, err := sdkrpc.EncodeMessage(m)
		if err != nil {
			l.log.Debug("ignored a message that cannot be encoded", "error", err)
			continue
		}
		l.session.Receive(raw, &linkReply{link: l, silent: make(chan struct{})}, extraFrom(m), nil)
	}
}

// send queues a message to be written.
func (l *link) send(msg []byte) error { return l.sendUnless(nil, msg) }

// sendUnless is send that stops waiting for room when never is closed.
func (l *link) sendUnless(never <-chan struct{}, msg []byte) error {
	select {
	case <-l.closing:
		return errLinkClosed
	case <-l.failed:
		return errLinkClosed
	default:
	}
	select {
	case l.queue <- bytes.Clone(msg):
		return nil
	case <-never:
		return nil
	case <-l.closing:
		return errLinkClosed
	case <-l.failed:
		return errLinkClosed
	}
}

// write writes what is queued, in order, until finish or a failure.
func (l *link) write() {
	defer close(l.written)
	for {
		select {
		case msg := <-l.queue:
			if !l.writeOne(msg) {
				return
			}
		case <-l.failed:
			return
		case <-l.closing:
			for {
				select {
				case msg := <-l.queue:
					if !l.writeOne(msg) {
						return
					}
				default:
					close(l.drained)
					return
				}
			}
		}
	}
}

// writeOne reports whether writing can go on.
func (l *link) writeOne(raw []byte) bool {
	m, err := sdkrpc.DecodeMessage(raw)
	if err != nil {
		l.log.Debug("a message has no form that the transport takes", "error", err)
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	stalled := time.AfterFunc(writeTimeout, func() { l.fail(ErrStalled) })
	defer stalled.Stop()
	if err := l.conn.Write(ctx, m); err != nil {
		l.fail(fmt.Errorf("gosdk: write: %w", err))
		return false
	}
	return true
}

// fail notes that nothing more can be written.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.failed)
	}
}

// writeErr is why writing failed, nil when the peer is gone.
func (l *link) writeErr() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isGone(l.err) {
		return nil
	}
	return l.err
}

// finish lets what is queued be written for at most d.
func (l *link) finish(d time.Duration) {
	close(l.closing)
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-l.drained:
	case <-l.written:
	case <-limit.C:
	}
}

// await waits for both goroutines, whose Read and Write should have been freed by Close, but
// not for long.
func (l *link) await(d time.Duration) {
	limit := time.NewTimer(d)
	defer limit.Stop()
	for _, over := range []chan struct{}{l.written, l.ended} {
		select {
		case <-over:
		case <-limit.C:
			return
		}
	}
}

// linkReply is the server.Reply of one request. All share the connection.
type linkReply struct {
	link   *link
	silent chan struct{} // closed by Silence, which is called once: a handler that waits for room is freed
}

func (r *linkReply) Send(msg []byte) error { return r.link.sendUnless(r.silent, msg) }

// Answer has nobody to tell when the peer is gone.
func (r *linkReply) Answer(msg []byte, _ int) { _ = r.link.send(msg) }

func (r *linkReply) Silence() { close(r.silent) }
