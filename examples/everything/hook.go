package main

import (
	"context"
	"net"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (f *fixture) addHook() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_hook",
		Description: "Sits in a read that knows no context, until a hook of its token closes the connection.",
	}, f.readUntilHook)
}

func (f *fixture) readUntilHook(_ context.Context, req *servercontext.Request, in tagged) (string, error) {
	connection, peer := net.Pipe()
	defer peer.Close()
	stop := req.Token().OnCancel(func(err *cancellation.Error) {
		f.events.add(in.Tag, eventHook, 0, err)
		connection.Close()
	})
	defer stop()

	f.events.add(in.Tag, eventStarted, 0, nil)
	if _, err := connection.Read(make([]byte, 1)); err != nil {
		if cancelled := req.Token().Err(); cancelled != nil {
			return "", cancelled
		}
		return "", err
	}
	return done, nil
}
