package main

import (
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixture is the server and what its handlers share.
type fixture struct {
	server *server.Server // set by newFixture, never changed
	events events         // what the cancellation fixtures have done
}

// newFixture returns a server with everything registered. options may be nil.
func newFixture(options *server.Options) *fixture {
	var o server.Options
	if options != nil {
		o = *options
	}
	o.Instructions = "A fixture server for tests of MCP clients. Its tools do nothing useful."
	// Tests count progress reports, so none may be merged with the next.
	o.ProgressInterval = -1
	// Some clients try the first tool without arguments, so that must be one
	// that needs none.
	o.RegistrationOrder = true
	f := &fixture{server: server.New(&mcp.Implementation{Name: "heed-everything", Title: "Heed's fixture server", Version: "1.0.0"}, &o)}
	f.addContent()
	f.addReports()
	f.addElicitations()
	f.addSchemas()
	f.addCapabilities()
	f.addRounds()
	f.addChanges()
	f.addStreams()
	f.addPrompts()
	f.addResources()
	f.addCompletions()
	f.addSubscriptions()
	f.addEcho()
	f.addWaits()
	f.addWork()
	f.addHook()
	f.addShield()
	f.addNested()
	f.addEvents()
	f.addStats()
	f.addMethod()
	return f
}

// nothing is the arguments of a tool that takes none.
type nothing struct{}

// done is the text that fixtures return when they come to their end.
const done = "done"

// Defaults and bounds of arguments that are durations stand in struct tags; this
// turns the milliseconds into a duration.
func millis(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
