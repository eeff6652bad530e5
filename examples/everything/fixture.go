package main

import (
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/tasks"
	fixtures "github.com/heedmcp/heed/transport/transporttest/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixture is the server and what its handlers share.
type fixture struct {
	server       *server.Server     // set by newFixture, never changed
	cancellation *fixtures.Fixtures // the same
	tasks        *tasks.Manager     // the same
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
	f.cancellation = fixtures.Register(f.server)
	f.addSubscriptions()
	f.addTasks()
	f.addSkills()
	return f
}

// nothing is the arguments of a tool that takes none.
type nothing struct{}
