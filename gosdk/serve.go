package gosdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// serveGrace is what running requests get when ctx ends, before they are cancelled.
	serveGrace = time.Second
	// serveDeadline is what cancelled handlers get to return.
	serveDeadline = 3 * time.Second
	// flushTime is how long the last messages may take to be written.
	flushTime = 250 * time.Millisecond
	// closeTime is how long a Read or Write may go on after the connection was closed.
	closeTime = time.Second
)

// Serve serves one session over a transport of the official SDK: its in-memory
// one, or one of your own. The session may speak either era. It returns
//
//   - nil when the transport ends, after running requests were cancelled with
//     origin Disconnect,
//   - nil when ctx ends, after they were given a second and cancelled with origin Shutdown,
//   - an error when the transport cannot connect, read or write, or when the peer
//     does not take a message for 30 seconds,
//   - a *server.DrainError when handlers have not returned three seconds after their
//     cancel.
//
// The transport's connection is closed at the end; a Read that goes on nevertheless
// keeps its goroutine. Ids are as exact as the official
// jsonrpc.ID, which has no fractions and no numbers beyond 2^53; transport/stdio and
// transport/streamable have no such limits, and the official streamable transports do not
// work outside of their own runtime.
func Serve(ctx context.Context, s *server.Server, t mcp.Transport) error {
	conn, err := t.Connect(ctx)
	if err != nil {
		return fmt.Errorf("gosdk: connect: %w", err)
	}
	l := newLink(conn, s.Logger())
	l.session = s.Open(ctx, server.SessionOptions{ID: conn.SessionID(), Send: l.send})
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go l.write()
	go l.read(reading)
	err = l.serve(ctx)
	l.finish(flushTime)
	stop()
	closeErr := conn.Close()
	l.await(closeTime)
	if err == nil && closeErr != nil && !isGone(closeErr) {
		err = fmt.Errorf("gosdk: close: %w", closeErr)
	}
	return err
}

// serve waits for the reason to end and ends the session.
func (l *link) serve(ctx context.Context) error {
	select {
	case <-l.ended:
		l.fail(errLinkClosed) // nobody reads either; whoever waits for room is freed
		return errors.Join(l.readErr, l.drain(0, cancellation.Disconnect, "end of input"))
	case <-l.failed:
		return errors.Join(l.writeErr(), l.drain(0, cancellation.Disconnect, "output failed"))
	case <-l.session.Done():
		return l.drain(0, cancellation.Disconnect, "session ended")
	case <-ctx.Done():
		return l.drain(serveGrace, cancellation.Shutdown, "server is shutting down")
	}
}

// drain ends the session and waits for its handlers. A peer that goes away
// meanwhile cancels what is left.
func (l *link) drain(grace time.Duration, origin cancellation.Origin, reason string) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace+serveDeadline)
	defer cancel()
	if origin == cancellation.Disconnect {
		l.session.Close(origin, reason)
	} else {
		over := make(chan struct{})
		defer close(over)
		go func() {
			select {
			case <-l.ended:
				l.fail(errLinkClosed)
				l.session.Close(cancellation.Disconnect, "end of input")
			case <-l.failed:
				l.session.Close(cancellation.Disconnect, "output failed")
			case <-over:
			}
		}()
	}
	err := l.session.Drain(ctx, grace, reason)
	l.session.Close(origin, reason)
	return err
}

// isGone tells whether an error only says that the other end is gone.
func isGone(err error) bool {
	for _, end := range []error{io.EOF, io.ErrClosedPipe, net.ErrClosed, os.ErrClosed, mcp.ErrConnectionClosed, context.Canceled} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// extraFrom is what an official transport knows about a message.
func extraFrom(m sdkrpc.Message) *server.Extra {
	r, ok := m.(*sdkrpc.Request)
	if !ok {
		return nil
	}
	given, ok := r.Extra.(*mcp.RequestExtra)
	if !ok || given == nil {
		return nil
	}
	x := &server.Extra{TokenInfo: given.TokenInfo, Header: given.Header}
	if given.CloseSSEStream != nil {
		x.CloseStream = func(retry time.Duration) error {
			given.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: retry})
			return nil
		}
	}
	return x
}
