package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tapped transport is another one with a tap on its messages.
type tapped struct {
	mcp.Transport
	tap *tap
}

// Connect implements [mcp.Transport].
func (t *tapped) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tappedConnection{connection, t.tap}, nil
}

type tappedConnection struct {
	mcp.Connection
	tap *tap
}

// Write notes the message before it is written, so that everything the tap
// sees after it may have been caused by it.
func (c *tappedConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	c.tap.note(message, true)
	return c.Connection.Write(ctx, message)
}

func (c *tappedConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err == nil {
		c.tap.note(message, false)
	}
	return message, err
}
