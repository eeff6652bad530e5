package stdio

import (
	"context"
	"io"
	"os"

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
	st := newStream(newLines(r, o.MaxLine), out, o.Logger)
	st.session = s.Open(ctx, server.SessionOptions{Send: st.send})
	ended := make(chan error, 1)
	go func() { ended <- st.read() }()
	l := &life{
		o: o, session: st.session, out: out,
		ended: ended, failed: out.failed, done: ctx.Done(), signals: signals,
	}
	l.run()
	if l.stopReading(r) {
		calmRead(r)
	}
	if l.stopWriting() {
		calmWrite(w)
	}
	return l.err
}
