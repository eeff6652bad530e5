package streamable_test

import (
	"context"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Whoever waits for the cancellation, by a channel or a hook, has it in the instant of the
// drop: no time passes on the clock of the bubble. A handler that polls has it
// after a moment.
func TestInvariant_R2_WhoeverWaitsLearnsOfADropAtOnce(t *testing.T) {
	handlers := map[string]func(ctx context.Context, begun chan<- struct{}){
		"channel": func(ctx context.Context, begun chan<- struct{}) {
			done := ctx.Done()
			close(begun)
			<-done
		},
		"hook": func(ctx context.Context, begun chan<- struct{}) {
			called := make(chan struct{})
			cancellation.FromContext(ctx).OnCancel(func(*cancellation.Error) { close(called) })
			close(begun)
			<-called
		},
		"derived": func(ctx context.Context, begun chan<- struct{}) {
			below, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			close(begun)
			<-below.Done()
		},
	}
	for name, handler := range handlers {
		bubble.Test(t, func(t *testing.T) {
			s := server.New(&mcp.Implementation{Name: "drop", Version: "1"}, nil)
			begun, told := make(chan struct{}), make(chan struct{})
			server.MustAddTool(s, &mcp.Tool{Name: "hold"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
				defer close(told)
				handler(ctx, begun)
				return "", ctx.Err()
			})
			h := streamable.NewHandler(s, nil)
			ctx, drop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				h.ServeHTTP(newGuard(), modernTool(1, "hold", M{}).request(ctx, 1))
			}()
			<-begun
			start := time.Now()
			drop()
			<-told
			<-done
			require.Zero(t, time.Since(start), name)
		})
	}
}
