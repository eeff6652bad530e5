package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/heedmcp/heed/transport/stdio"
	"github.com/heedmcp/heed/transport/streamable"
)

const (
	path           = "/mcp"
	headersWithin  = 10 * time.Second // for a client's request line and headers
	shutdownWithin = 10 * time.Second // for all that still runs
)

// serve runs the fixture server until its client or ctx has ended.
func serve(ctx context.Context, o *options, stderr io.Writer) error {
	f := newFixture(nil)
	defer f.tasks.Close()
	ctx, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { f.update(ctx) })
	defer background.Wait()
	defer stop()
	if o.transport == transportHTTP {
		return serveHTTP(ctx, f, o.addr, stderr)
	}
	return stdio.Serve(ctx, f.server, nil)
}

// serveHTTP serves until a signal or the end of ctx. Then what is running is given
// the server's grace, cancelled, and waited for.
func serveHTTP(ctx context.Context, f *fixture, addr string, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	handler := streamable.NewHandler(f.server, nil)
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: headersWithin, ConnContext: streamable.ConnContext}
	fmt.Fprintf(stderr, "everything: listening on http://%s%s\n", listener.Addr(), path)

	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	select {
	case err := <-failed:
		return errors.Join(err, handler.Close())
	case <-ctx.Done():
		stop() // a second signal ends the program at once
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	err = handler.Shutdown(deadline)
	if e := web.Shutdown(deadline); e != nil {
		err = errors.Join(err, web.Close())
	}
	<-failed // http.ErrServerClosed
	return err
}
