package main

import (
	"context"
	"sync"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// transient is the name of the tool and of the prompt that come and go.
const transient = "test_transient"

// changes adds and removes something in turn, so that each call is a change.
type changes struct {
	mu    sync.Mutex
	there bool // guarded by mu; written by next
}

func (c *changes) next(add, remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.there = !c.there; c.there {
		add()
	} else {
		remove()
	}
}

// addChanges adds the tools that change what the server has.
func (f *fixture) addChanges() {
	var tools, prompts changes
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_trigger_tool_change", Description: "Adds a tool, or takes it away again.",
	}, func(context.Context, *servercontext.Request, nothing) (string, error) {
		tools.next(f.addTransientTool, func() { f.server.RemoveTools(transient) })
		return "The list of tools has changed.", nil
	})
	server.MustAddTool(f.server, &mcp.Tool{
		Name: "test_trigger_prompt_change", Description: "Adds a prompt, or takes it away again.",
	}, func(context.Context, *servercontext.Request, nothing) (string, error) {
		prompts.next(f.addTransientPrompt, func() { f.server.RemovePrompts(transient) })
		return "The list of prompts has changed.", nil
	})
}

func (f *fixture) addTransientTool() {
	f.addFixed(transient, "A tool that comes and goes.", text("still there"))
}

func (f *fixture) addTransientPrompt() {
	server.MustAddPrompt(f.server, &mcp.Prompt{Name: transient, Description: "A prompt that comes and goes."},
		func(context.Context, *servercontext.Request, nothing) (string, error) { return "still there", nil })
}
