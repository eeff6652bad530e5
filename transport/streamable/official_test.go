package streamable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connect is the official SDK's client of an endpoint.
func (e *endpoint) connect(o *mcp.ClientOptions, version string) *mcp.ClientSession {
	e.t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "1"}, o)
	cs, err := c.Connect(e.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: e.url, HTTPClient: e.client,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(e.t, err)
	e.t.Cleanup(func() { _ = cs.Close() })
	return cs
}

func TestOfficialClientInBothEras(t *testing.T) {
	for _, version := range []string{"", server.Version20260728, server.Version20251125, server.Version20250618, server.Version20250326} {
		for name, o := range map[string]*streamable.Options{"auto": nil, "json": {Response: streamable.JSON}, "stream": {Response: streamable.Stream}} {
			t.Run(version+" "+name, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					e := serve(t, newFixture(t, nil).s, o)
					var progress []float64
					cs := e.connect(&mcp.ClientOptions{
						ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
							progress = append(progress, r.Params.Progress)
						},
					}, version)
					res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: M{"text": "hello"}})
					require.NoError(t, err)
					require.Len(t, res.Content, 1)
					assert.Equal(t, "hello", res.Content[0].(*mcp.TextContent).Text)

					params := &mcp.CallToolParams{Name: "echo", Arguments: M{"text": "x", "progress": 3}}
					params.SetProgressToken("tok")
					_, err = cs.CallTool(t.Context(), params)
					require.NoError(t, err)
					synctest.Wait()
					if name == "json" {
						assert.Empty(t, progress)
					} else {
						assert.Equal(t, []float64{1, 2, 3}, progress)
					}

					_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"})
					require.Error(t, err)
				})
			})
		}
	}
}

func TestOfficialClientCancels(t *testing.T) {
	for _, version := range []string{server.Version20260728, server.Version20251125} {
		t.Run(version, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				e := serve(t, f.s, nil)
				cs := e.connect(nil, version)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "wait", Arguments: M{"tag": "a"}})
					done <- err
				}()
				time.Sleep(time.Second)
				cancel()
				require.ErrorIs(t, <-done, context.Canceled)
				want := cancellation.Peer
				if version == server.Version20260728 {
					want = cancellation.Disconnect
				}
				require.Equal(t, want, f.next("a").Origin)
				_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: M{"text": "still here"}})
				require.NoError(t, err)
			})
		})
	}
}

func TestOfficialClientIsAsked(t *testing.T) {
	for _, version := range []string{server.Version20260728, server.Version20251125} {
		t.Run(version, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				server.MustAddTool(f.s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *servercontext.Request, in struct{}) (string, error) {
					res, err := req.Elicit(ctx, &mcp.ElicitParams{Message: "sure?", RequestedSchema: M{"type": "object", "properties": M{"ok": M{"type": "boolean"}}}})
					if err != nil {
						return "", err
					}
					return res.Action, nil
				})
				e := serve(t, f.s, nil)
				cs := e.connect(&mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: M{"ok": true}}, nil
				}}, version)
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Arguments: M{}})
				require.NoError(t, err)
				require.Len(t, res.Content, 1)
				require.Equal(t, "accept", res.Content[0].(*mcp.TextContent).Text)
			})
		})
	}
}

// A client that learns of the end of its session can open another one; the
// official one tells by the 404, if its body is not about the request.
func TestOfficialClientLearnsThatItsSessionIsGone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{MaxSessions: 1})
		c := mcp.NewClient(&mcp.Implementation{Name: "official", Version: "1"}, nil)
		cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: e.url, HTTPClient: e.client, DisableStandaloneSSE: true},
			&mcp.ClientSessionOptions{ProtocolVersion: server.Version20251125})
		require.NoError(t, err)
		synctest.Wait()
		e.connect(nil, server.Version20251125)
		_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: M{"text": "x"}})
		require.Truef(t, errors.Is(err, mcp.ErrSessionMissing), "%v", err)
	})
}
