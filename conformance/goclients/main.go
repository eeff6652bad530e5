// Goclients runs the checks of what a client may expect of the fixture server with
// Go clients that other people wrote: the official SDK's, and mcp-go's. It is to them what
// the scripts of ../clients are to the TypeScript ones.
//
//	goclients -client official|mcp-go [-revision 2025-11-25] [-only CHECK,CHECK] [-patience 10s] (-url URL | -- SERVER [ARGUMENT...])
//
// It prints a verdict per check, one JSON object a line:
//
//	{"client":"official","era":"handshake","check":"echo","ok":true,"ms":3}
//
// A verdict that is not ok has an "error". The exit status is 0 when all are ok, 1
// when one is not, and 2 when it was called in a wrong way.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// statelessRevision is the first revision without a handshake. Revisions are dates.
const statelessRevision = "2026-07-28"

// target says which client is to be tried, and where the server is.
type target struct {
	revision string   // the one to speak
	url      string   // over HTTP; "" over stdio
	command  []string // over stdio
	only     []string // the names of the checks to run; nil for all
}

func (t *target) stateless() bool { return t.revision >= statelessRevision }

func (t *target) era() string {
	if t.stateless() {
		return "stateless"
	}
	return "handshake"
}

// server is the command that starts the server, which tells people what it has to
// tell.
func (t *target) server() *exec.Cmd {
	command := exec.Command(t.command[0], t.command[1:]...)
	command.Stderr = os.Stderr
	return command
}

var clients = map[string]func(context.Context, *target) (session, error){
	"official": openOfficial,
	"mcp-go":   openMCPGo,
}

func main() {
	var to target
	client := flag.String("client", "", "official or mcp-go")
	flag.StringVar(&to.revision, "revision", statelessRevision, "the protocol revision to speak")
	flag.StringVar(&to.url, "url", "", "where the server is, unless a command starts it")
	only := flag.String("only", "", "the names of the checks to run; all, if there are none")
	patience := flag.Duration("patience", 10*time.Second, "how long the server may take for what it does at once")
	flag.Parse()
	to.command = flag.Args()
	open := clients[*client]
	if open == nil || (to.url == "") == (len(to.command) == 0) {
		fmt.Fprintln(os.Stderr, "goclients: want -client official or mcp-go, and either -url or a command")
		os.Exit(2)
	}
	if *only != "" {
		to.only = strings.Split(*only, ",")
	}
	r := runner{client: *client + "-" + to.revision, target: &to, patience: *patience, encoder: json.NewEncoder(os.Stdout)}
	if !r.run(open) {
		os.Exit(1)
	}
}
