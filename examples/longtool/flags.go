package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const usage = `longtool shows a long-running MCP tool that stops when it is asked to.

usage:
  longtool [flags]             tell the whole story, over stdio and over HTTP,
                               in well under a minute
  longtool task [flags]        tell the story of a call that becomes a task, and
                               outlives its client and its server
  longtool serve -stdio        run as an MCP server on stdin and stdout
  longtool serve -http ADDR    run as an MCP server at http://ADDR/mcp, such as
                               127.0.0.1:8080, until SIGINT or SIGTERM

flags:
  -db FILE|URL   an SQLite file, or a postgres:// URL; the story refills it
                 (default: for the story a temporary file, for serve longtool.db);
                 tasks are kept in FILE.tasks, or in the same database
  -postings N    stale postings on the board, 1 to 100000 (default 400)
  -batch N       postings closed in one transaction, 1 to 1000 (default 25)
  -delay D       how long each batch takes, 0s to 1m (default 600ms); over HTTP
                 the story is told at twice the speed
  -quiet         print only what was proved

exit status: 0 everything holds, 1 something does not, 2 wrong use, or a
database or an address that cannot be used.
`

const (
	defaultPostings = 400
	defaultBatch    = 25
	defaultDelay    = 600 * time.Millisecond

	maxPostings = 100_000
	maxBatch    = 1000
	maxDelay    = time.Minute

	defaultServeDB = "longtool.db"
)

var errHelp = errors.New("help")

// options are what the command line said.
type options struct {
	serve    bool
	task     bool   // the story of a task
	stdio    bool   // serve only
	http     string // serve only: the address to listen on
	db       string // empty: a temporary file
	postings int
	batch    int
	delay    time.Duration
	quiet    bool
}

// parse reads the command line. Its error is one line for the user.
func parse(args []string) (*options, error) {
	o := &options{postings: defaultPostings, batch: defaultBatch, delay: defaultDelay}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "serve":
			o.serve, o.db = true, defaultServeDB
		case "task":
			o.task = true
		case "help":
			return nil, errHelp
		default:
			return nil, fmt.Errorf("unknown command %.80q (there are task and serve; longtool -h says more)", args[0])
		}
		args = args[1:]
	}
	flags := flag.NewFlagSet("longtool", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("db", "", func(s string) (err error) { o.db, err = databaseName(s); return err })
	flags.Func("postings", "", number(&o.postings, 1, maxPostings))
	if o.serve {
		flags.BoolVar(&o.stdio, "stdio", false, "")
		flags.Func("http", "", func(s string) (err error) { o.http, err = address(s); return err })
	} else {
		flags.Func("batch", "", number(&o.batch, 1, maxBatch))
		flags.Func("delay", "", duration(&o.delay, maxDelay))
		flags.BoolVar(&o.quiet, "quiet", false, "")
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, errHelp
	case err != nil:
		return nil, fmt.Errorf("%w (longtool -h lists the flags)", err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %.80q (longtool -h says more)", flags.Arg(0))
	case o.serve && o.stdio == (o.http != ""):
		return nil, errors.New("serve needs either -stdio or -http ADDR")
	}
	return o, nil
}

func number(into *int, least, most int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		*into = n
		return nil
	}
}

func duration(into *time.Duration, most time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 || d > most {
			return fmt.Errorf("want a duration from 0s to %s, such as 250ms", short(most))
		}
		*into = d
		return nil
	}
}

// short is a round duration as one types it: 1m, not 1m0s.
func short(d time.Duration) string {
	if d > 0 && d%time.Minute == 0 {
		return strings.TrimSuffix(d.String(), "0s")
	}
	return d.String()
}

// address is s if it has the form of one to listen on.
func address(s string) (string, error) {
	if _, port, err := net.SplitHostPort(s); err != nil || port == "" {
		return "", errors.New("want host:port, such as 127.0.0.1:8080")
	}
	return s, nil
}

// databaseName is s if it can name a database that two processes can open.
func databaseName(s string) (string, error) {
	scheme, _, isURL := strings.Cut(s, "://")
	switch {
	case s == "":
		return "", errors.New("want a file path or a postgres:// URL")
	case s == ":memory:":
		return "", errors.New("want a file: a database in memory cannot be shared with the server")
	case isPostgres(s):
		if _, err := url.Parse(s); err != nil {
			return "", errors.New("the URL is malformed")
		}
	case isURL:
		return "", fmt.Errorf("unknown scheme %.20q, want a file path or a postgres:// URL", scheme)
	}
	return s, nil
}
