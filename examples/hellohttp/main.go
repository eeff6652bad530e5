// Command hellohttp is examples/hello over streamable HTTP: one endpoint for
// clients of every protocol revision, and a shutdown that lets work finish.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type countdown struct {
	From int `json:"from" jsonschema:"minimum=1,maximum=60" jsonschema_description:"how many seconds to count"`
}

func count(ctx context.Context, req *servercontext.Request, in countdown) (string, error) {
	for i := range in.From {
		if err := req.Progress(ctx, float64(i), float64(in.From), ""); err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done(): // at once, not at the next second
			return "", context.Cause(ctx)
		}
	}
	return fmt.Sprintf("counted %d seconds", in.From), nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	s := server.New(&mcp.Implementation{Name: "hello", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "countdown", Description: "Counts seconds."}, count)

	// region http
	h := streamable.NewHandler(s, nil)
	http.Handle("/mcp", h)
	srv := &http.Server{Addr: *addr, ReadHeaderTimeout: 10 * time.Second, ConnContext: streamable.ConnContext}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-stop.Done()
		grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = h.Shutdown(grace) // running calls get some time, then their tokens fire
		_ = srv.Shutdown(grace)
	}()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	<-ended // ListenAndServe returns before the last responses are written
	// endregion
}
