package stdio

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/heedmcp/heed/server"
)

// What tests need of the parts that no program can reach.

var (
	ErrTooLong = errTooLong
	ErrEnded   = errEnded
)

const (
	MaxWrite   = maxWrite
	MaxBlocked = maxBlocked
	FullBlock  = fullBlock
)

type (
	Lines = lines
	Queue = queue
	Reply = reply
)

func NewLines(r io.Reader, max int) *Lines { return newLines(r, max) }
func (l *lines) Next() ([]byte, error)     { return l.next() }
func (l *lines) Held() int                 { return cap(l.buf) }

func (q *queue) Push(msg string, r *reply) { q.push([]byte(msg), r) }
func (q *queue) Take() string              { return string(q.next()) }
func (q *queue) Withdraw(r *reply)         { q.withdraw(r) }

// Waits is what a caller of put waits for on behalf of r, nil if none does.
func (r *reply) Waits() <-chan struct{} {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	return r.room
}

func (r *reply) Settle() { r.settled = true }

type Outbox struct{ *outbox }

func NewOutbox(w io.Writer, max int, timeout time.Duration) Outbox {
	return Outbox{newOutbox(w, max, timeout)}
}

// Reply is a reply of a request whose handler runs, or of one that is being read.
func (o Outbox) Reply(mayWait bool) *Reply {
	r := &reply{out: o.outbox}
	r.mayWait.Store(mayWait)
	return r
}

func (o Outbox) Put(msg string) error           { return o.put([]byte(msg), nil, false) }
func (o Outbox) Fail(err error)                 { o.fail(err) }
func (o Outbox) Err() error                     { return o.err() }
func (o Outbox) Blocked() int                   { return int(o.blocked.Load()) }
func (o Outbox) Finish(d time.Duration) bool    { return o.finish(d) }
func (o Outbox) Failed() <-chan struct{}        { return o.failed }
func (o Outbox) AwaitIdle(d time.Duration) bool { return o.awaitIdle(d) }

// Pending is how many bytes are kept.
func (o Outbox) Pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sizeLocked()
}

// ServeSignals is ServeStream with a source of signals.
func ServeSignals(ctx context.Context, s *server.Server, r io.Reader, w io.Writer, o *Options, signals <-chan os.Signal) error {
	return serve(ctx, s, r, w, o.withDefaults(s), signals)
}

// Standard is what Serve makes of three descriptors.
type Standard struct {
	In    io.Reader
	Out   io.Writer
	Close func()
}

func OpenStandard(in, out, stderr int, guard bool) (*Standard, error) {
	s, err := openStandard(in, out, stderr, guard)
	if err != nil {
		return nil, err
	}
	return &Standard{s.in, s.out, s.close}, nil
}
