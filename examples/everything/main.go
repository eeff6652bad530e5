// Everything is a fixture server: it has a tool, prompt or resource for each
// thing that a client can ask of an MCP server, and a set of tools that wait,
// poll, block, commit, fail and ask the client, so that their cancellation can be
// watched from outside.
//
//	go run ./examples/everything stdio
//	go run ./examples/everything http -addr 127.0.0.1:8080
//
// Over HTTP the path is /mcp. Both serve every protocol revision.
//
// The cancellation fixtures are those of package transport/transporttest/fixture. What
// they do they also write down: cancel_events lists the events by tag, cancel_stats
// counts what is left running. The rest is what the official conformance suite asks for.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Exit statuses.
const (
	exitOK     = 0
	exitBroken = 1 // serving has failed
	exitUsage  = 2 // a wrong command or flag
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	if err := serve(ctx, o, stderr); err != nil {
		return fail(stderr, err, exitBroken)
	}
	return exitOK
}

// fail prints one line, whatever the error's text looks like.
func fail(stderr io.Writer, err error, status int) int {
	fmt.Fprintln(stderr, "everything: "+strings.Join(strings.Fields(err.Error()), " "))
	return status
}
