// Longtool is a long-running MCP tool that stops when it is asked to, with a
// real database behind it.
//
//	go run ./examples/longtool
//
// fills a job board, starts itself as an MCP server, closes the stale postings
// through the official Go SDK's client, presses Stop, shows what each layer
// knows of it, retries under the same operation id, and proves from the
// database that every posting was closed once and every applicant notified
// once.
//
// This it does twice: over stdio, where Stop sends a notification, and over HTTP
// in the stateless era, where Stop closes the response.
//
//	longtool task
//
// tells another story: the call becomes a task, its client leaves, another one looks again and
// cancels it, a new task goes on with the operation, and the server is killed in
// the middle. The next server finds the task in the database and goes on with it.
//
//	longtool serve -stdio -db board.db
//	longtool serve -http 127.0.0.1:8080 -db postgres://localhost/board
//
// runs only the server, for any MCP client.
//
// To see how a tool is made to stop, read job.go first, then serve.go: the
// first is the work, the second the few lines that make a tool of it. What
// keeps two calls with one operation id apart is in lease.go, what is
// proved at the end is in audit.go, and what makes tasks of calls is in taskstore.go.
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
	exitOK          = 0
	exitBroken      = 1   // an invariant does not hold, or the story could not be told
	exitUsage       = 2   // a wrong flag or command, or a database or an address that cannot be used
	exitInterrupted = 130 // Ctrl-C
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	if o.serve {
		return serve(context.Background(), o, stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	story := tell
	if o.task {
		story = tellTask
	}
	status, err := story(ctx, o, newScreen(stdout, o.quiet))
	switch {
	case ctx.Err() != nil:
		return fail(stderr, errors.New("interrupted"), exitInterrupted)
	case err != nil:
		return fail(stderr, err, status)
	}
	return status
}

// fail prints one line, whatever the error's text looks like.
func fail(stderr io.Writer, err error, status int) int {
	fmt.Fprintln(stderr, "longtool: "+strings.Join(strings.Fields(err.Error()), " "))
	return status
}
