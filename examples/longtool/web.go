package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
)

const (
	webPath       = "/mcp"
	listening     = "longtool: listening on " // what is printed ahead of the URL
	headersWithin = 10 * time.Second          // for a client's request line and headers
)

// shutdownWithin is how long everything that still runs may take to end. Tests change it, before
// anything is begun: they are no judges of machines.
var shutdownWithin = 10 * time.Second

// listen takes the address. Its error is one line for the user.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("cannot listen on %q: %w", address, err)
	}
	return listener, nil
}

// serveHTTP serves until SIGINT, SIGTERM or the end of ctx. Then no request is
// taken any more, and calls that run get the server's grace, are cancelled
// and answered, and are waited for. A second signal ends the program at once.
func serveHTTP(ctx context.Context, listener net.Listener, s *server.Server, logger *slog.Logger, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	handler := streamable.NewHandler(s, nil)
	mux := http.NewServeMux()
	mux.Handle(webPath, handler)
	web := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headersWithin,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	fmt.Fprintf(stderr, "%shttp://%s%s\n", listening, listener.Addr(), webPath)

	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return errors.Join(err, handler.Close())
	case <-ctx.Done():
		stop()
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	err := handler.Shutdown(deadline) // first: it ends what web.Shutdown waits for
	if web.Shutdown(deadline) != nil {
		err = errors.Join(err, web.Close())
	}
	<-served // http.ErrServerClosed
	return err
}
