package stdio_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixture is a server whose tools can be told to misbehave.
type fixture struct {
	*server.Server
	release chan struct{} // frees the handlers of ignore
	running atomic.Int64  // handlers that have begun and not returned
	begun   atomic.Int64  // handlers that have begun
	done    chan server.RequestDone
}

type toolInput struct {
	Text string `json:"text,omitempty"`
	N    int    `json:"n,omitempty"`
}

type tool = func(ctx context.Context, req *servercontext.Request, in toolInput) (string, error)

func newFixture(o *server.Options) *fixture {
	f := &fixture{release: make(chan struct{}), done: make(chan server.RequestDone, 1<<16)}
	var options server.Options
	if o != nil {
		options = *o
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	options.ProgressInterval = -1
	options.Observer = &server.Observer{RequestDone: func(d server.RequestDone) {
		select {
		case f.done <- d:
		default:
		}
	}}
	f.Server = server.New(&mcp.Implementation{Name: "fixture", Version: "1.0.0"}, &options)
	for name, handler := range map[string]tool{
		"echo":  func(_ context.Context, _ *servercontext.Request, in toolInput) (string, error) { return in.Text, nil },
		"wait":  waitError,
		"value": waitValue,
		"panic": waitPanic,
		"size": func(_ context.Context, _ *servercontext.Request, in toolInput) (string, error) {
			return strings.Repeat("x", in.N), nil
		},
		"ignore":  f.ignore,
		"chatter": chatter,
		"stray":   stray,
	} {
		server.MustAddTool(f.Server, &mcp.Tool{Name: name}, f.count(handler))
	}
	server.MustAddTool(f.Server, &mcp.Tool{Name: "begun"}, f.told)
	return f
}

// told tells how many handlers have begun, itself not counted.
func (f *fixture) told(context.Context, *servercontext.Request, toolInput) (string, error) {
	return strconv.FormatInt(f.begun.Load(), 10), nil
}

func (f *fixture) count(handler tool) tool {
	return func(ctx context.Context, req *servercontext.Request, in toolInput) (string, error) {
		f.begun.Add(1)
		f.running.Add(1)
		defer f.running.Add(-1)
		return handler(ctx, req, in)
	}
}

func waitError(ctx context.Context, _ *servercontext.Request, _ toolInput) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func waitValue(ctx context.Context, _ *servercontext.Request, _ toolInput) (string, error) {
	<-ctx.Done()
	return "done", nil
}

func waitPanic(ctx context.Context, _ *servercontext.Request, _ toolInput) (string, error) {
	<-ctx.Done()
	panic("on purpose")
}

// ignore does not look at its token.
func (f *fixture) ignore(context.Context, *servercontext.Request, toolInput) (string, error) {
	<-f.release
	return "late", nil
}

// chatter reports progress n times whatever its token says, and then waits for it.
func chatter(ctx context.Context, req *servercontext.Request, in toolInput) (string, error) {
	for i := range in.N {
		_ = req.Progress(ctx, float64(i+1), float64(in.N), in.Text)
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// stray writes to standard output by all the ways there are.
func stray(_ context.Context, _ *servercontext.Request, in toolInput) (string, error) {
	fmt.Println("STRAY print")
	fmt.Fprintln(os.NewFile(1, "one"), "STRAY descriptor") // never closed: descriptor 1 is the process's
	child := exec.Command("/bin/sh", "-c", "echo STRAY child")
	child.Stdout = os.Stdout
	if err := child.Run(); err != nil {
		return "", errors.Join(errors.New("child"), err)
	}
	return in.Text, nil
}
