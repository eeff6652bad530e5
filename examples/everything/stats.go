package main

import (
	"context"
	"runtime"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stats are figures about the server as of now.
type stats struct {
	Goroutines      int   `json:"goroutines" jsonschema_description:"goroutines of the process"`
	InFlight        int   `json:"in_flight" jsonschema_description:"requests that may still be answered, but for this one and subscriptions"`
	Lingering       int   `json:"lingering" jsonschema_description:"cancelled requests whose handlers still run"`
	Parked          int   `json:"parked" jsonschema_description:"handlers that wait for the client to retry with its input"`
	Sessions        int   `json:"sessions" jsonschema_description:"open sessions"`
	DroppedMessages int64 `json:"dropped_messages" jsonschema_description:"messages that were not sent because of a cancel"`
	Unresponsive    int64 `json:"unresponsive" jsonschema_description:"handlers that ignored their token for too long"`
}

func (f *fixture) addStats() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_stats",
		Description: "Counts what the server has running and what it has dropped.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(context.Context, *servercontext.Request, nothing) (stats, error) {
		s := f.server.Stats()
		return stats{
			Goroutines:      runtime.NumGoroutine(),
			InFlight:        max(s.InFlight-s.Listening-1, 0),
			Lingering:       s.Lingering,
			Parked:          s.Parked,
			Sessions:        s.Sessions,
			DroppedMessages: s.Dropped,
			Unresponsive:    s.Unresponsive,
		}, nil
	})
}
