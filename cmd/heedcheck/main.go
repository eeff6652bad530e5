// Heedcheck tries from outside whether an MCP server stops when it is asked to: a verdict
// a line, with what was on the wire under those that are bad.
//
//	heedcheck -- my-server --stdio
//	heedcheck http://127.0.0.1:8080/mcp
//	heedcheck -url http://127.0.0.1:8080/mcp -- my-server --http 127.0.0.1:8080
//	heedcheck compare -config servers.json -format markdown
//
// It speaks JSON-RPC itself. What it tries are the rules of package
// transport/transporttest; -list says what they are. A server with the fixtures of
// package transport/transporttest/fixture is seen through; of others it sees what
// comes over the wire, and needs a tool that takes a few seconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // a rule was broken, or could not be tried to its end
	exitUsage  = 2 // wrong use, or no server
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "compare" {
		return runCompare(ctx, args[1:], stdout, stderr)
	}
	o, err := parse(args)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		return fail(stderr, err)
	case o.list:
		list(stdout, o.rules)
		return exitOK
	}
	return check(ctx, o, stdout, stderr)
}

// fail prints one line, whatever the error's text looks like.
func fail(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "heedcheck: "+strings.Join(strings.Fields(err.Error()), " "))
	return exitUsage
}
