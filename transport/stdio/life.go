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

// life is how a service ends. One goroutine runs it, and it alone uses the fields.
type life struct {
	o       Options
	session *server.Session
	out     *outbox

	// Reasons to end. Each becomes nil when it was taken.
	ended  <-chan error    // gets why the input ended, once
	failed <-chan struct{} // closed when the output has failed
	done   <-chan struct{} // ctx's

	signals <-chan os.Signal // nil: none
	asked   int              // how many signals came

	until time.Time // when serving must be over; set once a reason was taken
	err   error     // what serve returns
}

// run waits for a reason to end, cancels what is running and waits for it.
func (l *life) run() {
	var grace time.Duration
	var reason string
	select {
	case err := <-l.ended:
		reason = l.inputEnded(err)
	case <-l.failed:
		reason = l.outputFailed()
	case <-l.done:
		l.done = nil
		grace, reason = l.o.Grace, "the server is shutting down"
	case sig := <-l.signals:
		l.asked++
		grace, reason = l.o.Grace, "the server is shutting down: "+sig.String()
	}
	l.o.Logger.Debug("stdio: the service ends", "reason", reason, "error", l.err)
	left := l.drain(grace, reason)
	l.session.Close(cancellation.Shutdown, reason)
	l.err = errors.Join(l.err, left)
}

// drain waits for the handlers, while it goes on to watch the stream: a peer
// that goes away meanwhile cancels what is left.
func (l *life) drain(grace time.Duration, reason string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	limit := time.AfterFunc(l.handlersUntil(grace), cancel)
	defer limit.Stop()
	left := make(chan error, 1)
	go func() { left <- l.session.Drain(ctx, grace, reason) }()
	for {
		select {
		case err := <-left:
			return err
		case err := <-l.ended:
			l.inputEnded(err)
			limit.Reset(l.handlersUntil(0))
		case <-l.failed:
			l.outputFailed()
			limit.Reset(l.handlersUntil(0))
		case <-l.signals:
			if l.asked++; l.asked > 1 {
				l.until = time.Now().Add(l.lastWords())
				cancel()
			}
		}
	}
}

// handlersUntil sets the time until which serving must be over, and returns how much
// of that handlers have.
func (l *life) handlersUntil(grace time.Duration) time.Duration {
	l.until = time.Now().Add(grace + l.o.Deadline)
	return grace + l.o.Deadline - l.lastWords()
}

// lastWords is the part of Deadline that is kept for writing what was answered
// last.
func (l *life) lastWords() time.Duration { return min(l.o.Deadline/10, 250*time.Millisecond) }

func (l *life) inputEnded(err error) (reason string) {
	l.ended = nil
	reason = "end of input"
	if !gone(err) {
		reason = "the input failed"
		l.fail(fmt.Errorf("stdio: read: %w", err))
	}
	l.session.Close(cancellation.Disconnect, reason)
	return reason
}

// outputFailed is no error when the input has ended: that the peer is gone is
// known then.
func (l *life) outputFailed() (reason string) {
	l.failed = nil
	reason = "the output failed"
	if l.ended != nil {
		l.fail(l.out.err())
	}
	l.session.Close(cancellation.Disconnect, reason)
	return reason
}

// fail notes the first error.
func (l *life) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// stopWriting writes what was answered last, and reports whether nobody uses the
// writer any more.
func (l *life) stopWriting() bool { return l.out.finish(time.Until(l.until)) }

// stopReading ends the reading goroutine, and reports whether it has.
func (l *life) stopReading(r io.Reader) bool {
	if l.ended == nil {
		return true
	}
	if !interruptRead(r) {
		return false
	}
	t := time.NewTimer(interruptGrace)
	defer t.Stop()
	select {
	case <-l.ended:
		return true
	case <-t.C:
		return false
	}
}

// gone reports whether err is how a stream ends when the peer has left, or when
// the program itself has closed it.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}
