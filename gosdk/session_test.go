package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/gosdk"
	"github.com/heedmcp/heed/server"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nested are the session calls that wait for the client.
var nested = map[string]func(context.Context, *mcp.ServerSession) (any, error){
	"elicit": func(ctx context.Context, ss *mcp.ServerSession) (any, error) {
		return ss.Elicit(ctx, &mcp.ElicitParams{Message: "name?", RequestedSchema: M{"type": "object", "properties": M{"name": M{"type": "string"}}}})
	},
	"sample": func(ctx context.Context, ss *mcp.ServerSession) (any, error) {
		return ss.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}})
	},
	"sample_tools": func(ctx context.Context, ss *mcp.ServerSession) (any, error) {
		return ss.CreateMessageWithTools(ctx, &mcp.CreateMessageWithToolsParams{MaxTokens: 1, Tools: []*mcp.Tool{{Name: "t", InputSchema: M{"type": "object"}}},
			Messages: []*mcp.SamplingMessageV2{{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}}}})
	},
	"sample_plain": func(ctx context.Context, ss *mcp.ServerSession) (any, error) {
		return ss.CreateMessageWithTools(ctx, &mcp.CreateMessageWithToolsParams{MaxTokens: 1,
			Messages: []*mcp.SamplingMessageV2{{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}}}})
	},
	"roots": func(ctx context.Context, ss *mcp.ServerSession) (any, error) { return ss.ListRoots(ctx, nil) },
	"ping":  func(ctx context.Context, ss *mcp.ServerSession) (any, error) { return nil, ss.Ping(ctx, nil) },
}

var allCapabilities = M{"elicitation": M{"form": M{}, "url": M{}}, "sampling": M{"tools": M{}}, "roots": M{}}

var answers = map[string]string{
	"elicitation/create":     `{"action":"accept","content":{"name":"n"}}`,
	"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"t"}}`,
	"roots/list":             `{"roots":[{"uri":"file:///r"}]}`,
	"ping":                   `{}`,
}

type outcome struct {
	value any
	err   error
}

// nestedServer has a tool per session call; the outcome goes to the channel.
func nestedServer(t testing.TB, background bool) (*gosdk.Server, chan outcome) {
	s := newServer(t)
	outcomes := make(chan outcome, 8)
	for name, call := range nested {
		gosdk.MustAddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			if background {
				ctx = context.Background()
			}
			v, err := call(ctx, req.Session)
			outcomes <- outcome{v, err}
			return &mcp.CallToolResult{}, nil, err
		})
	}
	return s, outcomes
}

func question(t testing.TB, line string) (id json.RawMessage, method string) {
	t.Helper()
	var q struct {
		ID     json.RawMessage
		Method string
	}
	require.NoError(t, json.Unmarshal([]byte(line), &q))
	require.NotEmpty(t, q.ID, line)
	return q.ID, q.Method
}

func TestInvariant_R1_SessionCallsGoToTheirRequest(t *testing.T) {
	for name := range nested {
		for _, background := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s background=%v", name, background), func(t *testing.T) {
				s, outcomes := nestedServer(t, background)
				p := newPeer(t, s.Server, server.Version20251125, allCapabilities)
				one, two := p.call("1", name, M{}, nil), p.call(`"1"`, name, M{}, nil)
				for _, st := range []*stream{two, one} {
					id, method := question(t, st.line())
					p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, answers[method]))
					o := receive(t, outcomes)
					require.NoError(t, o.err)
					assert.NotContains(t, st.result(), "isError")
				}
			})
		}
	}
}

func TestSessionCallsReturnWhatTheClientSaid(t *testing.T) {
	s, outcomes := nestedServer(t, false)
	p := newPeer(t, s.Server, server.Version20251125, allCapabilities)
	ask := func(name string) any {
		st := p.call("1", name, M{}, nil)
		id, method := question(t, st.line())
		p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, answers[method]))
		o := receive(t, outcomes)
		require.NoError(t, o.err)
		st.result()
		return o.value
	}
	assert.Equal(t, &mcp.ElicitResult{Action: "accept", Content: M{"name": "n"}}, ask("elicit"))
	sampled := ask("sample").(*mcp.CreateMessageResult)
	assert.Equal(t, &mcp.TextContent{Text: "t"}, sampled.Content)
	assert.Equal(t, "m", sampled.Model)
	assert.Equal(t, []mcp.Content{&mcp.TextContent{Text: "t"}}, ask("sample_tools").(*mcp.CreateMessageWithToolsResult).Content)
	assert.Equal(t, "file:///r", ask("roots").(*mcp.ListRootsResult).Roots[0].URI)
}

func TestSamplingWithoutToolsNeedsNoToolsCapability(t *testing.T) {
	s, outcomes := nestedServer(t, false)
	p := newPeer(t, s.Server, server.Version20251125, M{"sampling": M{}})
	st := p.call("1", "sample_plain", M{}, nil)
	id, method := question(t, st.line())
	p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, answers[method]))
	require.NoError(t, receive(t, outcomes).err)
	st.result()

	st = p.call("2", "sample_tools", M{}, nil)
	require.ErrorContains(t, receive(t, outcomes).err, "sampling.tools")
	assert.Equal(t, true, st.result()["isError"])
}

func TestInvariant_R2_CancelledRequestsFreeTheirSessionCalls(t *testing.T) {
	for name := range nested {
		for _, background := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s background=%v", name, background), func(t *testing.T) {
				s, outcomes := nestedServer(t, background)
				p := newPeer(t, s.Server, server.Version20251125, allCapabilities)
				st := p.call("1", name, M{}, nil)
				id, _ := question(t, st.line())
				p.cancel("1", "user pressed stop")
				o := receive(t, outcomes)
				var cancelled *cancellation.Error
				require.ErrorAs(t, o.err, &cancelled)
				assert.Equal(t, cancellation.Peer, cancelled.Origin)
				assert.Equal(t, "user pressed stop", cancelled.Reason)
				require.ErrorIs(t, o.err, context.Canceled)

				assert.Empty(t, st.end(), "a cancelled request is not answered")
				told := st.rest()
				require.Len(t, told, 1)
				assert.Contains(t, told[0], `"notifications/cancelled"`)
				assert.Contains(t, told[0], `"requestId":`+string(id))
				assert.Contains(t, told[0], "user pressed stop")
				p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)) // too late
			})
		}
	}
}

// The same through the official client: what it does on a cancel reaches the handler.
func TestOfficialClientCancelsNestedCalls(t *testing.T) {
	s, outcomes := nestedServer(t, false)
	asked, freed := make(chan string, 1), make(chan error, 1)
	wait := func(ctx context.Context, what string) error {
		asked <- what
		<-ctx.Done()
		freed <- ctx.Err()
		return ctx.Err()
	}
	cs := connect(t, s.Server, server.Version20251125, &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, wait(ctx, "elicit")
		},
		CreateMessageWithToolsHandler: func(ctx context.Context, _ *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			return nil, wait(ctx, "sample")
		},
	})
	for _, name := range []string{"elicit", "sample", "sample_tools"} {
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() {
			_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: name})
			called <- err
		}()
		receive(t, asked)
		cancel()
		require.ErrorIs(t, receive(t, called), context.Canceled)
		require.ErrorIs(t, receive(t, outcomes).err, cancellation.ErrCancelled, name)
		require.ErrorIs(t, receive(t, freed), context.Canceled, name)
	}
}

func TestSessionCallsInTheStatelessEra(t *testing.T) {
	s, outcomes := nestedServer(t, true)
	cs := connect(t, s.Server, server.Version20260728, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: M{"name": "n"}}, nil
		},
		CreateMessageWithToolsHandler: func(context.Context, *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			return &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "t"}}}, nil
		},
	})
	for _, name := range []string{"elicit", "sample", "sample_tools", "roots"} {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
		require.NoError(t, err, name)
		assert.False(t, r.IsError, name)
		require.NoError(t, receive(t, outcomes).err, name)
	}
	_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ping"})
	require.NoError(t, err)
	require.Error(t, receive(t, outcomes).err, "the era has no ping")
}

func TestStatelessHandlersAreFreedWithTheirClient(t *testing.T) {
	for _, name := range []string{"elicit", "sample", "sample_tools", "roots"} {
		s, outcomes := nestedServer(t, true)
		p := newPeer(t, s.Server, server.Version20260728, nil)
		st := p.call("1", name, M{}, M{mcp.MetaKeyClientCapabilities: allCapabilities})
		assert.Equal(t, "input_required", st.result()["resultType"], name)
		p.cancel("1", "stop")
		var cancelled *cancellation.Error
		require.ErrorAs(t, receive(t, outcomes).err, &cancelled, name)
		assert.Equal(t, cancellation.Peer, cancelled.Origin)
	}
}

func TestClientsErrorReachesOfficialCode(t *testing.T) {
	s, outcomes := nestedServer(t, false)
	gosdk.Wrap(s.Server).AddTool(&mcp.Tool{Name: "raw", InputSchema: M{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := nested["elicit"](ctx, req.Session)
		return nil, err
	})
	p := newPeer(t, s.Server, server.Version20251125, allCapabilities)
	fail := func(tool string) string {
		st := p.call("1", tool, M{}, nil)
		id, _ := question(t, st.line())
		p.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"no user"}}`, id))
		return st.end()
	}
	assert.Contains(t, fail("elicit"), `"isError":true`)
	var rpc *sdkrpc.Error
	require.ErrorAs(t, receive(t, outcomes).err, &rpc)
	assert.EqualValues(t, -32042, rpc.Code)

	answer := fail("raw")
	assert.Contains(t, answer, `"code":-32603`, "the client's code is not the server's")
	assert.Contains(t, answer, "no user")
}

func TestSessionTellsWhoTheClientIs(t *testing.T) {
	s := newServer(t)
	type seen struct {
		id, version, session string
		info, requestInfo    *mcp.Implementation
		elicits              bool
	}
	seens := make(chan seen, 1)
	gosdk.MustAddTool(s, &mcp.Tool{Name: "who"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		p := req.Session.InitializeParams()
		seens <- seen{req.Session.ID(), req.ProtocolVersion(), p.ProtocolVersion, p.ClientInfo, req.ClientInfo(), p.Capabilities.Elicitation != nil && p.Capabilities.Elicitation.URL != nil}
		return nil, nil, req.Session.Close()
	})
	for _, version := range eras {
		for _, capable := range []bool{true, false} {
			caps := M{}
			if capable {
				caps = allCapabilities
			}
			p := newPeer(t, s.Server, version, caps)
			meta := M{}
			if version == server.Version20260728 {
				meta = M{mcp.MetaKeyClientCapabilities: caps, mcp.MetaKeyClientInfo: M{"name": "peer", "version": "3"}}
			}
			p.call("1", "who", M{}, meta).result()
			got := receive(t, seens)
			assert.Equal(t, "session-"+t.Name(), got.id)
			assert.Equal(t, version, got.version)
			assert.Equal(t, server.Version20251125, got.session)
			assert.Equal(t, &mcp.Implementation{Name: "peer", Version: "3"}, got.info)
			assert.Equal(t, got.info, got.requestInfo)
			assert.Equal(t, capable, got.elicits)
		}
	}
}

func TestInvariant_G2_SessionsEndWithTheirRequest(t *testing.T) {
	s := newServer(t)
	var kept *mcp.ServerSession
	gosdk.MustAddTool(s, &mcp.Tool{Name: "keep"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		kept = req.Session
		return nil, nil, nil
	})
	gosdk.MustAddTool(s, &mcp.Tool{Name: "use"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, kept.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Data: "kept"})
	})
	p := newPeer(t, s.Server, server.Version20251125, allCapabilities)
	p.request("9", "logging/setLevel", M{"level": "debug"}).result()
	p.call("1", "keep", M{}, nil).result()

	require.NoError(t, kept.Log(context.Background(), &mcp.LoggingMessageParams{Level: "error", Data: "nobody"}))
	_, err := nested["elicit"](context.Background(), kept)
	require.ErrorIs(t, err, gosdk.ErrNoRequest)
	require.ErrorIs(t, kept.Ping(context.Background(), nil), gosdk.ErrNoRequest)
	require.NoError(t, kept.Wait())

	// A later request of the same client can lend its stream ...
	st := p.call("2", "use", M{}, nil)
	st.result()
	assert.Contains(t, strings.Join(st.rest(), ""), "kept")
	// ... one of another client cannot.
	other := newPeer(t, s.Server, server.Version20251125, allCapabilities)
	other.request("9", "logging/setLevel", M{"level": "debug"}).result()
	st = other.call("1", "use", M{}, nil)
	st.result()
	assert.Empty(t, st.rest())
}
