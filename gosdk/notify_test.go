package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInvariant_R3_ProgressTokensAreExact(t *testing.T) {
	s := newServer(t)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for _, at := range []float64{1, 2, 2, 1, 3} {
			if err := req.Session.NotifyProgress(context.Background(), &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: at, Total: 3, Message: "m",
			}); err != nil {
				return nil, nil, err
			}
		}
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "another's", Progress: 9})
		return nil, nil, nil
	})
	for _, token := range []string{`7`, `"7"`, `9007199254740993`, `"9007199254740993"`, `0`, `""`} {
		p := newPeer(t, s.Server, server.Version20251125, M{})
		st := p.raw(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{},"_meta":{"progressToken":` + token + `}}}`)
		st.result()
		lines := st.rest()
		require.Len(t, lines, 3, token)
		for i, line := range lines {
			assert.Contains(t, line, `"progressToken":`+token+`,"progress":`+fmt.Sprint(i+1), token)
		}
	}
	p := newPeer(t, s.Server, server.Version20251125, M{})
	st := p.call("1", "work", M{}, nil)
	st.result()
	assert.Empty(t, st.rest(), "without a token there is no progress")
}

func TestProgressIsACheckpoint(t *testing.T) {
	s := newServer(t)
	ready, stopped := make(chan struct{}), make(chan error, 1)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		close(ready)
		<-ctx.Done()
		err := req.Session.NotifyProgress(context.Background(), &mcp.ProgressNotificationParams{ProgressToken: "t", Progress: 1})
		logged := req.Session.Log(context.Background(), &mcp.LoggingMessageParams{Level: "error", Data: "late"})
		stopped <- errors.Join(err, logged)
		return nil, nil, nil
	})
	p := newPeer(t, s.Server, server.Version20251125, M{})
	p.request("2", "logging/setLevel", M{"level": "debug"}).result()
	st := p.call("1", "work", M{}, M{"progressToken": "t"})
	receive(t, ready)
	p.cancel("1", "stop")
	require.ErrorIs(t, receive(t, stopped), cancellation.ErrCancelled)
	assert.Empty(t, st.end())
	assert.Empty(t, st.rest())
}

// slog's Info has no context: only the session tells which request it is for.
func TestLogsGoToTheirRequestAtItsLevel(t *testing.T) {
	s := newServer(t)
	both := make(chan struct{})
	gosdk.MustAddTool(s, &mcp.Tool{Name: "log"}, func(_ context.Context, req *mcp.CallToolRequest, in struct {
		Tag string `json:"tag"`
	}) (*mcp.CallToolResult, any, error) {
		both <- struct{}{}
		log := slog.New(mcp.NewLoggingHandler(req.Session, &mcp.LoggingHandlerOptions{LoggerName: "worker"}))
		log.With("tag", in.Tag).WithGroup("g").Info("info", "n", 1)
		log.Warn("warning", "tag", in.Tag)
		return nil, nil, nil
	})
	check := func(t *testing.T, st *stream, tag string, levels ...string) {
		st.result()
		lines := st.rest()
		require.Len(t, lines, len(levels), lines)
		for i, line := range lines {
			assert.Contains(t, line, `"level":"`+levels[i]+`"`)
			assert.Contains(t, line, `"logger":"worker"`)
			assert.Contains(t, line, `"tag":"`+tag+`"`)
		}
	}
	t.Run("handshake", func(t *testing.T) {
		p := newPeer(t, s.Server, server.Version20251125, M{})
		p.request("9", "logging/setLevel", M{"level": "info"}).result()
		a, b := p.call("1", "log", M{"tag": "a"}, nil), p.call("2", "log", M{"tag": "b"}, nil)
		receive(t, both)
		receive(t, both)
		check(t, a, "a", "info", "warning")
		check(t, b, "b", "info", "warning")
	})
	t.Run("stateless", func(t *testing.T) {
		p := newPeer(t, s.Server, server.Version20260728, nil)
		a := p.call("1", "log", M{"tag": "a"}, M{mcp.MetaKeyLogLevel: "info"})
		b := p.call("2", "log", M{"tag": "b"}, M{mcp.MetaKeyLogLevel: "warning"})
		c := p.call("3", "log", M{"tag": "c"}, nil)
		for range 3 {
			receive(t, both)
		}
		check(t, a, "a", "info", "warning")
		check(t, b, "b", "warning")
		check(t, c, "c")
	})
}

func TestElicitationCompleteIsSentWhereItExists(t *testing.T) {
	s := newServer(t)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "done"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: "e"})
	})
	for version, want := range map[string]int{server.Version20251125: 1, server.Version20250618: 0, server.Version20260728: 0} {
		p := newPeer(t, s.Server, version, M{})
		st := p.call("1", "done", M{}, nil)
		st.result()
		lines := st.rest()
		require.Len(t, lines, want, version)
		if want > 0 {
			assert.Contains(t, lines[0], `"elicitationId":"e"`)
		}
	}
}
