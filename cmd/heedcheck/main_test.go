package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/heedmcp/heed/transport/transporttest/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// serverMode makes this test's program a server, which behaves as the mode says.
const serverMode = "HEEDCHECK_TEST_SERVER"

// In the package, since a command has no other way in than run.
func TestMain(m *testing.M) {
	if mode := os.Getenv(serverMode); mode != "" {
		os.Exit(behave(mode, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func behave(mode string, args []string) int {
	switch mode {
	case "good":
		return served(stdio.Serve(context.Background(), newServer(), nil))
	case "http":
		return served(serveHTTP(args[0]))
	case "tasks":
		return served(stdio.Serve(context.Background(), newTaskServer(), nil))
	case "hang": // reads nothing, says nothing, and does not want to end
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
		select {}
	case "silent":
		lines(func(string) {})
	case "garbage":
		for {
			if _, err := fmt.Println("garbage " + strings.Repeat("*", 1000)); err != nil {
				return 1
			}
		}
	case "flood":
		for {
			if _, err := fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("*", 100_000) + `"}}`); err != nil {
				return 1
			}
		}
	case "endless line":
		for {
			if _, err := fmt.Print(strings.Repeat("*", 100_000)); err != nil {
				return 1
			}
		}
	case "early":
		fmt.Fprintln(os.Stderr, "no license found")
		return 3
	case "dies": // at the first call
		lines(func(line string) {
			switch {
			case strings.Contains(line, `"initialize"`):
				fmt.Println(`{"jsonrpc":"2.0","id":"initialize","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`)
			case strings.Contains(line, `"tools/call"`):
				fmt.Fprintln(os.Stderr, "out of luck")
				os.Exit(4)
			default:
				answer(line)
			}
		})
	case "orphan": // starts another process, which outlives it unless both are killed
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), serverMode+"=child")
		if err := child.Start(); err != nil {
			return 1
		}
		select {}
	case "child":
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
		if _, err := net.Dial("tcp", os.Getenv("HEEDCHECK_TEST_ADDR")); err != nil {
			return 1
		}
		select {}
	}
	return 0
}

func served(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// newServer has the fixtures.
func newServer() *server.Server {
	s := server.New(&mcp.Implementation{Name: "good", Version: "1.0.0"}, &server.Options{
		ProgressInterval: -1, Logger: slog.New(slog.DiscardHandler),
	})
	fixture.Register(s)
	return s
}

// newTaskServer has no fixtures, but a tool that works as a task.
func newTaskServer() *server.Server {
	s := server.New(&mcp.Implementation{Name: "tasks", Version: "1.0.0"}, nil)
	if _, err := tasks.Enable(s, nil); err != nil {
		panic(err) // nobody has added it before
	}
	server.MustAddTool(s, &mcp.Tool{Name: "sleep"}, func(ctx context.Context, _ *servercontext.Request, in struct {
		MS int `json:"ms"`
	}) (string, error) {
		select {
		case <-ctx.Done():
			return "", cancellation.Checkpoint(ctx)
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
			return "done", nil
		}
	}, tasks.Tool(tasks.ToolOptions{Support: tasks.WhenPossible}))
	return s
}

func serveHTTP(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	h := streamable.NewHandler(newServer(), nil)
	web := &http.Server{Addr: addr, Handler: h}
	failed := make(chan error, 1)
	go func() { failed <- web.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	_ = h.Shutdown(context.Background()) // it has a limit of its own
	return web.Shutdown(context.Background())
}
