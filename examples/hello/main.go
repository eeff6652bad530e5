// Command hello is the smallest useful Heed server: one tool that reports
// progress, and stops when it is asked to.
package main

// region server
import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type countdown struct {
	From int `json:"from" jsonschema:"minimum=1,maximum=60" jsonschema_description:"how many seconds to count"`
}

func main() {
	s := server.New(&mcp.Implementation{Name: "hello", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "countdown", Description: "Counts seconds."},
		func(ctx context.Context, req *servercontext.Request, in countdown) (string, error) {
			for i := range in.From {
				if err := req.Progress(ctx, float64(i), float64(in.From), ""); err != nil {
					return "", err // stopped: the client hears nothing more of this call
				}
				time.Sleep(time.Second)
			}
			return fmt.Sprintf("counted %d seconds", in.From), nil
		})
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Fatal(err)
	}
}

// endregion
