// Command httpauth serves over HTTP to clients that bring a bearer token. A call belongs to
// whoever started it: nobody else can reach its session, so nobody else can cancel it.
//
//	go run ./examples/httpauth -addr 127.0.0.1:8080
//
// The tokens are a table, where a real server asks its identity provider: "ada-token" may
// read and write, "bob-token" may only read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// region auth
var tokens = map[string]auth.TokenInfo{
	"ada-token": {UserID: "ada", Scopes: []string{"jobs:read", "jobs:write"}},
	"bob-token": {UserID: "bob", Scopes: []string{"jobs:read"}},
}

func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	info, ok := tokens[token]
	if !ok {
		return nil, auth.ErrInvalidToken // 401, and nothing more is said
	}
	info.Expiration = time.Now().Add(time.Hour)
	return &info, nil
}

var guard = &streamable.Auth{
	Verifier: verify,
	Scopes:   []string{"jobs:read"},
	ScopesFor: func(method, name string) []string {
		if method == "tools/call" && name == "run_job" {
			return []string{"jobs:write"} // 403, with the scope that is missing
		}
		return nil
	},
}

// endregion

type none struct{}

type jobIn struct {
	Seconds int `json:"seconds" jsonschema:"minimum=1,maximum=3600" jsonschema_description:"how long the job takes"`
}

func runJob(ctx context.Context, req *servercontext.Request, in jobIn) (string, error) {
	who := req.TokenInfo().UserID
	for i := range in.Seconds {
		if err := req.Progress(ctx, float64(i), float64(in.Seconds), "for "+who); err != nil {
			log.Printf("the job of %s stopped: %v", who, err)
			return "", err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done(): // the next report returns the reason
		}
	}
	return "the job of " + who + " is done", nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	s := server.New(&mcp.Implementation{Name: "httpauth", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "whoami", Description: "Says whose token it was."},
		func(_ context.Context, req *servercontext.Request, _ none) (string, error) {
			return req.TokenInfo().UserID, nil
		})
	server.MustAddTool(s, &mcp.Tool{Name: "run_job", Description: "Runs a job."}, runJob)

	h := streamable.NewHandler(s, &streamable.Options{Auth: guard})
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ConnContext: streamable.ConnContext}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "httpauth: listening on http://%s/mcp\n", listener.Addr())
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go func() {
		<-stop.Done()
		grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = h.Shutdown(grace)
		_ = web.Shutdown(grace)
	}()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
