package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

const usage = `everything is a fixture server for MCP clients and for the official conformance suite.

usage:
  everything stdio        serve on stdin and stdout

exit status: 0 served, 1 serving has failed, 2 wrong use.
`

var errHelp = errors.New("help")

// options are what the command line said.
type options struct {
	transport string // stdio
}

// parse reads the command line. Its error is one line for the user.
func parse(args []string) (*options, error) {
	if len(args) == 0 {
		return nil, errors.New("which transport? use everything stdio (-h says more)")
	}
	o := &options{transport: args[0]}
	switch o.transport {
	case "stdio":
	case "help", "-h", "-help", "--help":
		return nil, errHelp
	default:
		return nil, fmt.Errorf("unknown command %.80q (there is only stdio; -h says more)", o.transport)
	}
	flags := flag.NewFlagSet("everything "+o.transport, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := flags.Parse(args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, errHelp
	case err != nil:
		return nil, fmt.Errorf("%w (-h lists the flags)", err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %.80q (-h says more)", flags.Arg(0))
	}
	return o, nil
}
