// Command tasks has a tool whose calls become tasks: when one takes longer than a moment, its
// client gets the name of a task instead of an answer, may go away, and asks for the outcome later.
// Clients that do not know tasks call the same tool and wait. The handler is the same in both cases,
// and so is its token: tasks/cancel fires it as a cancelled call does.
//
//	go run ./examples/tasks
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type reindexIn struct {
	Shards int `json:"shards" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"how many shards to build"`
}

// region handler
func reindex(ctx context.Context, req *servercontext.Request, in reindexIn) (string, error) {
	for shard := range in.Shards {
		// In a task this is what tasks/get says about it.
		if err := req.Progress(ctx, float64(shard), float64(in.Shards), fmt.Sprintf("shard %d", shard)); err != nil {
			log.Printf("stopped at shard %d: %v", shard, err)
			return "", err // only now the task is reported as cancelled
		}
		select {
		case <-time.After(100 * time.Millisecond): // the work
		case <-ctx.Done():
		}
	}
	return fmt.Sprintf("built %d shards", in.Shards), nil
}

// endregion

func main() {
	log.SetFlags(0)
	// region enable
	s := server.New(&mcp.Implementation{Name: "tasks", Version: "1.0.0"}, nil)
	m, err := tasks.Enable(s, &tasks.Options{TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	server.MustAddTool(s, &mcp.Tool{Name: "reindex", Description: "Builds the index anew."}, reindex,
		tasks.Tool(tasks.ToolOptions{Support: tasks.WhenPossible, After: 300 * time.Millisecond}))
	// endregion
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Print(err)
	}
}
