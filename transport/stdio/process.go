package stdio

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/heedmcp/heed/server"
)

// Serve serves one session over standard input and output, for as long as
// ServeStream would. SIGINT and SIGTERM end it like the end of ctx; a second one ends
// it without further waiting. When it returns the program should end.
//
// While it serves, stray output cannot reach the client: file descriptor 1 leads to
// standard error, so that fmt.Println, C code and subprocesses that
// inherit it write there. If standard error is the same pipe as standard output,
// both lead nowhere. [Options.NoGuard] leaves the descriptors as they are.
//
// Pipes and sockets are non-blocking while they are served, and their reads wait in
// Go's poller. A terminal's or file's descriptor is shared with other
// programs and stays as it is; a Read of a terminal that is under way when
// Serve returns goes on, and takes the next line of input with it.
//
// On systems other than Unix the guard covers os.Stdout only, and
// every Read is like a terminal's.
func Serve(ctx context.Context, s *server.Server, o *Options) error {
	p := o.withDefaults(s)
	std, err := openStandard(0, 1, 2, !p.NoGuard)
	if err != nil {
		return err
	}
	defer std.close()
	if p.NoSignals {
		return serve(ctx, s, std.in, std.out, p, nil)
	}
	signals := make(chan os.Signal, 2) // room for the one that ends at once
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	// A client that dies takes standard error along. Whoever logs that must not be
	// killed by it in the middle of cleaning up.
	broken := make(chan os.Signal, 1)
	for _, sig := range sigPipe {
		signal.Notify(broken, sig)
	}
	defer signal.Stop(broken)
	return serve(ctx, s, std.in, std.out, p, signals)
}

// standard is a process's input and output while they are served.
type standard struct {
	in  io.Reader
	out io.Writer

	restore []func() // how to put back what was changed, to be called last first
}

func (s *standard) close() {
	for i := len(s.restore) - 1; i >= 0; i-- {
		s.restore[i]()
	}
}
