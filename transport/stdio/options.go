package stdio

import (
	"log/slog"
	"time"

	"github.com/heedmcp/heed/server"
)

// Options configure how a stream is served. A nil *Options, like the zero
// value, is the default; every field says what its zero means.
type Options struct {
	// MaxLine bounds the length of a received line in bytes. A longer one is
	// skipped without being kept, logged, and answered with -32600. 0: 16 MiB;
	// negative: no bound.
	MaxLine int

	// MaxPending is how much output, in bytes, may wait for a peer that does not
	// read. Beyond it handlers that write wait for room. What is written while
	// a line is being read cannot wait; when twice as much is pending, the stream
	// counts as broken. 0: 4 MiB; negative: no bound.
	MaxPending int

	// WriteTimeout is how long the peer may take nothing of what is written
	// to it before the stream counts as broken. The check is made four
	// times in that span, so that it may take a quarter longer. 0: 30 seconds;
	// negative: no bound.
	WriteTimeout time.Duration

	// Grace is how long running requests go on after a signal or the end of ctx,
	// before they are cancelled. 0: one second; negative: they are cancelled at once.
	Grace time.Duration

	// Deadline is how long handlers may take to return after they were cancelled by
	// the end of the service, and what was answered to be written. Then it ends
	// without them. 0: three seconds; negative: it does not wait at all.
	Deadline time.Duration

	// NoGuard lets stray output to file descriptor 1 through to the client; see
	// [Serve]. It has no meaning for ServeStream.
	NoGuard bool

	// NoSignals leaves SIGINT, SIGTERM and SIGPIPE to the program. It has no
	// meaning for ServeStream.
	NoSignals bool

	// Logger gets what operators should know about the stream. nil: the server's.
	Logger *slog.Logger
}

const (
	defaultMaxLine      = 16 << 20
	defaultMaxPending   = 4 << 20
	defaultWriteTimeout = 30 * time.Second
	defaultGrace        = time.Second
	defaultDeadline     = 3 * time.Second
)

// withDefaults returns a copy in which every field holds what is in force.
func (o *Options) withDefaults(s *server.Server) Options {
	var p Options
	if o != nil {
		p = *o
	}
	p.MaxLine = bound(p.MaxLine, defaultMaxLine)
	p.MaxPending = bound(p.MaxPending, defaultMaxPending)
	p.WriteTimeout = duration(p.WriteTimeout, defaultWriteTimeout)
	p.Grace = duration(p.Grace, defaultGrace)
	p.Deadline = duration(p.Deadline, defaultDeadline)
	if p.Logger == nil {
		p.Logger = s.Logger()
	}
	return p
}

// unbounded is large enough for every use and small enough to be doubled.
const unbounded = int(^uint(0)>>1) / 4

func bound(n, def int) int {
	switch {
	case n == 0:
		return def
	case n < 0 || n > unbounded:
		return unbounded
	}
	return n
}

func duration(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}
