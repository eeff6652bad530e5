// Command middleware wraps all calls of tools: one middleware refuses what exceeds a caller's
// share, another writes an audit line for every call, also for those that were stopped.
//
//	go run ./examples/middleware
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const callTool = "tools/call"

// region audit
// audit writes how each call of a tool has ended. It sees the handler's own error, also where the
// client is not told of it.
func audit(to *slog.Logger) server.Middleware {
	return func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if req.Method() != callTool {
				return next(ctx, req)
			}
			var params struct{ Name string }
			_ = json.Unmarshal(req.Params(), &params) // the server answers what is malformed
			start := time.Now()
			result, err := next(ctx, req)
			attributes := []any{"tool", params.Name, "id", req.ID(), "took", time.Since(start).Round(time.Millisecond)}
			var stopped *cancellation.Error
			switch {
			case errors.As(cancellation.Checkpoint(ctx), &stopped):
				to.Info("stopped", append(attributes, "origin", stopped.Origin.String(), "reason", stopped.Reason)...)
			case err != nil:
				to.Info("failed", append(attributes, "error", err.Error())...)
			default:
				to.Info("done", attributes...)
			}
			return result, err
		}
	}
}

// endregion

// region limit
// limit refuses calls of tools beyond most that run at once. A call counts until its handler has
// returned, whether or not it was cancelled: it uses what it uses.
func limit(most int64) server.Middleware {
	var running atomic.Int64
	return func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if req.Method() != callTool {
				return next(ctx, req)
			}
			defer running.Add(-1)
			if running.Add(1) > most {
				return nil, errors.New("too many calls at once, try again later")
			}
			return next(ctx, req)
		}
	}
}

// endregion

type waitIn struct {
	Seconds int `json:"seconds" jsonschema:"minimum=0,maximum=3600" jsonschema_description:"how long to wait"`
}

func wait(ctx context.Context, req *servercontext.Request, in waitIn) (string, error) {
	_ = req.Progress(ctx, 1, 2, "waiting")
	select {
	case <-time.After(time.Duration(in.Seconds) * time.Second):
		return "waited", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func main() {
	s := server.New(&mcp.Implementation{Name: "middleware", Version: "1.0.0"}, nil)
	s.Use(audit(slog.New(slog.NewJSONHandler(os.Stderr, nil))), limit(2)) // the first is the outermost
	server.MustAddTool(s, &mcp.Tool{Name: "wait", Description: "Waits."}, wait)
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Fatal(err)
	}
}
