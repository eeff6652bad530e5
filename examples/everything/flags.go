package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
)

const usage = `everything is a fixture server for MCP clients and for the official conformance suite.

usage:
  everything stdio                 serve on stdin and stdout
  everything http [-addr ADDR]     serve over HTTP, at the path /mcp

flags of http:
  -addr HOST:PORT   where to listen (default 127.0.0.1:8080; port 0 takes a free
                    one, which is printed)

exit status: 0 served, 1 serving has failed, 2 wrong use.
`

const (
	transportStdio = "stdio"
	transportHTTP  = "http"

	defaultAddr = "127.0.0.1:8080"
)

var errHelp = errors.New("help")

// options are what the command line said.
type options struct {
	transport string // transportStdio or transportHTTP
	addr      string // transportHTTP only
}

// parse reads the command line. Its error is one line for the user.
func parse(args []string) (*options, error) {
	if len(args) == 0 {
		return nil, errors.New("which transport? use stdio or http (-h says more)")
	}
	o := &options{transport: args[0], addr: defaultAddr}
	flags := flag.NewFlagSet(o.transport, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch o.transport {
	case transportStdio:
	case transportHTTP:
		flags.Func("addr", "", func(s string) (err error) { o.addr, err = address(s); return err })
	case "help", "-h", "-help", "--help":
		return nil, errHelp
	default:
		return nil, fmt.Errorf("unknown command %.80q (there are stdio and http; -h says more)", o.transport)
	}
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

// address is s if that is an address to listen on.
func address(s string) (string, error) {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", errors.New("want HOST:PORT, such as 127.0.0.1:8080")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("want a port from 0 to 65535")
	}
	return s, nil
}
