// Command subprocess offers a command of the operator's choice as a tool. The command's lines
// become progress; a cancel ends the command and whatever it has started, first politely.
//
//	go run ./examples/subprocess sh -c 'for i in 1 2 3; do echo step $i; sleep 1; done'
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// politeness is how long a command may take to end after it was asked to.
const politeness = 2 * time.Second

type none struct{}

// region run
func run(ctx context.Context, req *servercontext.Request, args []string) (string, error) {
	out := &lines{report: func(n int, text string) { _ = req.Progress(ctx, float64(n), 0, text) }}
	command := exec.CommandContext(ctx, args[0], args[1:]...) // stdin stays empty: ours belongs to the client
	command.Stdout, command.Stderr = out, os.Stderr
	ownGroup(command)                                                // its children get the signals, too
	command.Cancel = func() error { return terminateGroup(command) } // once ctx is done
	command.WaitDelay = politeness                                   // then it is killed, and its pipe closed
	err := command.Run()
	if command.Process != nil {
		killGroup(command) // children that were deaf, or stayed behind
	}
	if err := cmp.Or(cancellation.Checkpoint(ctx), err); err != nil {
		return "", err
	}
	return fmt.Sprintf("done after %d lines", out.count), nil
}

// endregion

// maxLine is how much of a line is reported.
const maxLine = 1000

// lines reports each line that is written to it.
type lines struct {
	report func(n int, text string)
	count  int
	rest   []byte // of a line that has not ended
}

func (l *lines) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			if len(l.rest) < maxLine {
				l.rest = append(l.rest, c)
			}
			continue
		}
		l.count++
		l.report(l.count, string(l.rest))
		l.rest = l.rest[:0]
	}
	return len(p), nil
}

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: subprocess COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	s := server.New(&mcp.Implementation{Name: "subprocess", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "run", Description: fmt.Sprintf("Runs %q.", args)},
		func(ctx context.Context, req *servercontext.Request, _ none) (string, error) {
			return run(ctx, req, args)
		})
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Fatal(err)
	}
}
