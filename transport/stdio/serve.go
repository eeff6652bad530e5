package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
)

// ServeStream serves one session over any stream of bytes: the two ends of pipes,
// or twice the same socket. Each calls for a ServeStream of its own; one
// server may serve any number.
//
// It returns nil when r ends, after the running requests were cancelled with origin
// Disconnect, and when ctx ends, after they were given [Options.Grace] and cancelled
// with origin Shutdown. It returns an error when r or w fails, when the peer does not
// read ([ErrStalled], [ErrFlooded]), or, as a *server.DrainError, when handlers
// have not returned within [Options.Deadline].
//
// A Read or Write that is under way at the end is interrupted by a deadline if r or
// w have SetReadDeadline and SetWriteDeadline, which are reset after, else by Close if
// they have that. Apart from that r and w stay open. If they have none, a Read goes
// on in its goroutine until it returns.
func ServeStream(ctx context.Context, s *server.Server, r io.Reader, w io.Writer, o *Options) error {
	return serve(ctx, s, r, w, o.withDefaults(s), nil)
}

// serve serves until the input ends, the output fails, ctx ends or a signal comes.
func serve(ctx context.Context, s *server.Server, r io.Reader, w io.Writer, o Options, signals <-chan os.Signal) error {
	out := newOutbox(w, o.MaxPending, o.WriteTimeout)
	var st *stream
	session := s.Open(ctx, server.SessionOptions{Send: func(msg []byte) error { return st.send(msg) }})
	st = newStream(session, newLines(r, o.MaxLine), out)
	l := &life{
		o: o, session: session, out: out,
		ended:   make(chan error, 1),
		done:    ctx.Done(),
		signals: signals,
	}
	go func() { l.ended <- st.read() }()
	err := l.run(ctx)
	if interruptRead(r) {
		l.awaitReader()
	}
	calm(r, w)
	return err
}

// life is how a service ends. One goroutine runs it.
type life struct {
	o       Options
	session *server.Session
	out     *outbox
	ended   chan error       // gets why the input ended, once; nil after it was taken
	done    <-chan struct{}  // ctx's; nil after its end was seen
	signals <-chan os.Signal // nil: none

	err error // what serve returns
}

// run waits for the reason to end, ends the session and returns the error of
// the service.
func (l *life) run(ctx context.Context) error {
	grace := time.Duration(0)
	reason := ""
	select {
	case err := <-l.ended:
		l.inputEnded(err)
	case <-l.out.failed:
		l.outputFailed()
	case <-l.done:
		l.done = nil
		grace, reason = l.o.Grace, "server is shutting down"
	case sig := <-l.signals:
		grace, reason = l.o.Grace, "server got signal "+sig.String()
	}
	left := l.drain(grace, reason)
	l.session.Close(cancellation.Shutdown, reason)
	l.out.finish(time.After(l.flushTime()))
	return errors.Join(l.err, left)
}

// flushTime is the part of Deadline that is kept for writing what was answered
// last.
func (l *life) flushTime() time.Duration { return min(l.o.Deadline/10, 250*time.Millisecond) }

// drain waits for the handlers, while it goes on to watch the stream: a peer
// that goes away meanwhile cancels what is left.
func (l *life) drain(grace time.Duration, reason string) error {
	rest := l.o.Deadline - l.flushTime()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	limit := time.AfterFunc(grace+rest, cancel)
	defer limit.Stop()
	left := make(chan error, 1)
	go func() { left <- l.session.Drain(ctx, grace, reason) }()
	failed := l.out.failed
	if l.err != nil {
		failed = nil
	}
	for {
		select {
		case err := <-left:
			return err
		case err := <-l.ended:
			l.inputEnded(err)
			limit.Reset(rest)
		case <-failed:
			failed = nil
			l.outputFailed()
			limit.Reset(rest)
		case <-l.signals:
			cancel() // asked twice
		}
	}
}

func (l *life) inputEnded(err error) {
	l.ended = nil
	reason := "end of input"
	if !gone(err) {
		reason = "input failed"
		l.err = fmt.Errorf("stdio: read: %w", err)
	}
	l.session.Close(cancellation.Disconnect, reason)
}

func (l *life) outputFailed() {
	if l.ended != nil { // else the peer is known to be gone
		l.err = l.out.err()
	}
	l.session.Close(cancellation.Disconnect, "output failed")
}

// readerGrace is how long a Read that was interrupted may take to return.
const readerGrace = 100 * time.Millisecond

// awaitReader waits for the reading goroutine, whose Read was interrupted. Not
// every Close frees a Read, so that it does not wait for long.
func (l *life) awaitReader() {
	if l.ended == nil {
		return
	}
	select {
	case <-l.ended:
	case <-time.After(readerGrace):
	}
}

// gone reports whether err is how a stream ends when the peer has left, or when
// the program itself has closed it.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}
