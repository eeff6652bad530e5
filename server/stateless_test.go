package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every request of the stateless era says what it speaks and what its client can do.
func TestStateless_Meta(t *testing.T) {
	const version, caps = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	for name, tt := range map[string]struct {
		meta string
		code int64
	}{
		"complete":              {`{` + version + `,` + caps + `}`, 0},
		"with info":             {`{` + version + `,` + caps + `,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`, 0},
		"others are ignored":    {`{` + version + `,` + caps + `,"com.example/x":[1],"progressToken":1}`, 0},
		"escaped name":          {`{"io.modelcontextprotocol\/protocolVersio\u006e":"2026-07-28",` + caps + `}`, 0},
		"no capabilities":       {`{` + version + `}`, sdkrpc.CodeInvalidParams},
		"no version":            {`{` + caps + `}`, sdkrpc.CodeInvalidParams},
		"version number":        {`{"io.modelcontextprotocol/protocolVersion":20260728,` + caps + `}`, sdkrpc.CodeInvalidParams},
		"version null":          {`{"io.modelcontextprotocol/protocolVersion":null,` + caps + `}`, sdkrpc.CodeInvalidParams},
		"version of the future": {`{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + caps + `}`, mcp.CodeUnsupportedProtocolVersion},
		"version of the past":   {`{"io.modelcontextprotocol/protocolVersion":"1900-01-01",` + caps + `}`, mcp.CodeUnsupportedProtocolVersion},
		"version of handshakes": {`{"io.modelcontextprotocol/protocolVersion":"2025-11-25",` + caps + `}`, mcp.CodeUnsupportedProtocolVersion},
		"version with a space":  {`{"io.modelcontextprotocol/protocolVersion":"2026-07-28 ",` + caps + `}`, mcp.CodeUnsupportedProtocolVersion},
		"empty version":         {`{"io.modelcontextprotocol/protocolVersion":"",` + caps + `}`, mcp.CodeUnsupportedProtocolVersion},
		"capabilities array":    {`{` + version + `,"io.modelcontextprotocol/clientCapabilities":[]}`, sdkrpc.CodeInvalidParams},
		"capabilities null":     {`{` + version + `,"io.modelcontextprotocol/clientCapabilities":null}`, sdkrpc.CodeInvalidParams},
		"info text":             {`{` + version + `,` + caps + `,"io.modelcontextprotocol/clientInfo":"x"}`, sdkrpc.CodeInvalidParams},
		"level":                 {`{` + version + `,` + caps + `,"io.modelcontextprotocol/logLevel":"warning"}`, 0},
		"unknown level":         {`{` + version + `,` + caps + `,"io.modelcontextprotocol/logLevel":"loud"}`, sdkrpc.CodeInvalidParams},
		"level in capitals":     {`{` + version + `,` + caps + `,"io.modelcontextprotocol/logLevel":"Warning"}`, sdkrpc.CodeInvalidParams},
		"level number":          {`{` + version + `,` + caps + `,"io.modelcontextprotocol/logLevel":3}`, sdkrpc.CodeInvalidParams},
		"level null":            {`{` + version + `,` + caps + `,"io.modelcontextprotocol/logLevel":null}`, sdkrpc.CodeInvalidParams},
	} {
		t.Run(name, func(t *testing.T) {
			for scope, po := range map[string]peerOptions{
				"stream": {Version: server.Version20260728}, "http": {Version: server.Version20260728, Scope: true},
				"beside a handshake": {Version: server.Version20251125},
			} {
				inBubbleWith(t, nil, po, func(t *testing.T, f *fixture, p *peer) {
					p.Raw("1", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":`+tt.meta+`}}`)
					m := p.Answer(1)
					require.EqualValues(t, tt.code, m.Code(), "%s: %s", scope, m.Raw)
					if tt.code == 0 {
						require.Equal(t, "complete", p.Result(1)["resultType"])
					}
				})
			}
		})
	}
}

// In the scope of HTTP nothing else is served; on a stream it is the handshake era's.
func TestStateless_WithoutMeta(t *testing.T) {
	for _, params := range []string{``, `,"params":{}`, `,"params":{"_meta":{}}`, `,"params":{"_meta":null}`, `,"params":{"_meta":[]}`, `,"params":{"_meta":"x"}`} {
		inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Scope: true}, func(t *testing.T, f *fixture, p *peer) {
			for id, method := range []string{"tools/list", "server/discover", "initialize", "ping"} {
				p.Raw(idText(t, id), `{"jsonrpc":"2.0","id":`+idText(t, id)+`,"method":"`+method+`"`+params+`}`)
				require.EqualValues(t, sdkrpc.CodeInvalidParams, p.Answer(id).Code())
			}
			require.Empty(t, p.ss.InitializeVersion())
		})
		inBubbleWith(t, nil, peerOptions{Version: server.Version20260728}, func(t *testing.T, f *fixture, p *peer) {
			p.Raw("1", `{"jsonrpc":"2.0","id":1,"method":"tools/list"`+params+`}`)
			require.EqualValues(t, sdkrpc.CodeInvalidRequest, p.Answer(1).Code(), "the session is not initialized")
		})
	}
}

func TestStateless_UnsupportedVersionNamesThoseThatAre(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
		asked := strings.Repeat("9", 5000)
		p.Raw("1", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+asked+`"}}}`)
		m := p.Answer(1)
		var data mcp.UnsupportedProtocolVersionData
		require.NoError(t, json.Unmarshal(m.Error.Data, &data))
		require.Equal(t, server.Versions(), data.Supported)
		require.Less(t, len(data.Requested), 300)
	})
}

func TestDiscover(t *testing.T) {
	o := &server.Options{Instructions: "how to", Versions: []string{server.Version20241105, server.Version20260728}}
	for scope, po := range map[string]peerOptions{"stream": {Version: server.Version20260728}, "http": {Version: server.Version20260728, Scope: true}} {
		t.Run(scope, func(t *testing.T) {
			inBubbleWith(t, o, po, func(t *testing.T, f *fixture, p *peer) {
				p.Request(1, "server/discover", nil)
				r := p.Result(1)
				require.Equal(t, []any{server.Version20260728, server.Version20241105}, r["supportedVersions"])
				require.Equal(t, "how to", r["instructions"])
				require.Equal(t, "complete", r["resultType"])
				require.Contains(t, r, "ttlMs")
				require.Contains(t, r, "cacheScope")
				require.Contains(t, r["capabilities"], "tools")
				require.Equal(t, M{"io.modelcontextprotocol/serverInfo": M{"name": "fixture", "version": "1.0.0"}}, r["_meta"])
			})
		})
	}
	inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		p.Request(1, "server/discover", nil)
		require.EqualValues(t, sdkrpc.CodeMethodNotFound, p.Answer(1).Code(), "the handshake era has no such method")
	})
	inBubbleWith(t, &server.Options{HideServerInfo: true}, peerOptions{Version: server.Version20260728}, func(t *testing.T, f *fixture, p *peer) {
		p.Request(1, "server/discover", nil)
		require.NotContains(t, p.Result(1), "_meta")
	})
}

// Both eras live on one stream, side by side; the session keeps nothing of the stateless one.
func TestStateless_BesideAHandshake(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20250326, Caps: M{"roots": M{}}}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("version", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
			return req.ProtocolVersion() + encode(t, req.HasClientCapability("roots")), nil
		})
		other := &peer{t: t, s: f.Server, ss: p.ss, version: server.Version20260728, caps: M{}, replies: p.replies, changed: make(chan struct{})}
		for range 3 {
			p.Call(1, "version", nil)
			require.Equal(t, "2025-03-26true", p.Text(1))
			other.Call(1, "version", nil)
			require.Equal(t, "2026-07-28false", other.Text(1))
		}
		p.Call(1, "cancel_wait", tagged{Tag: "a"})
		f.Await("a", "started")
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, other.dup(1, "echo").Code(), "the ids of a stream are one space")
	})
	inBubbleWith(t, nil, peerOptions{Version: server.Version20260728}, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "echo", nil)
		p.Text(1)
		p.version = server.Version20251125 // a handshake may still follow
		require.Nil(t, p.Initialize(p.version).Error)
	})
}

func TestStateless_RefusedWhereItIsServedElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		ss := f.Open(t.Context(), server.SessionOptions{NoStateless: true, Version: server.Version20251125})
		defer ss.Close(0, "")
		code := 0
		p := &peer{t: t, version: server.Version20260728, caps: M{}}
		ss.Receive([]byte(p.Line(1, "tools/list", nil)), answerFunc(func(_ []byte, c int) { code = c }), nil, nil)
		require.Equal(t, int(sdkrpc.CodeInvalidRequest), code)
	})
}

func TestStateless_ScopeOfAServerWithoutIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, &server.Options{Versions: []string{server.Version20251125}})
		p := newPeer(t, f.Server, peerOptions{Version: server.Version20260728, Scope: true})
		p.Request(1, "initialize", M{"protocolVersion": server.Version20251125, "capabilities": M{}})
		require.NotZero(t, p.Answer(1).Code(), "the shared scope has no handshake")
		p.Request(2, "tools/list", nil)
		require.NotZero(t, p.Answer(2).Code())
		require.Empty(t, f.Stateless().InitializeVersion())
	})
}

// Requests over HTTP belong to no session and leave nothing behind.
func TestStateless_ScopeKeepsNothing(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Scope: true}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("store", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
			assert.Nil(t, req.Session())
			assert.Empty(t, req.Session().ID())
			req.Session().Store("a", 1)
			_, ok := req.Session().Load("a")
			assert.False(t, ok)
			return nil, nil
		})
		p.Call(1, "store", nil)
		p.Text(1)
		require.Zero(t, f.Stats().Sessions)
		require.NoError(t, p.ss.Wait(t.Context()))
	})
}

func TestVersions_Options(t *testing.T) {
	for name, versions := range map[string][]string{"unknown": {"2025-11-25", "2025-11-26"}, "empty": {}} {
		_, err := server.TryNew(&mcp.Implementation{Name: "x", Version: "1"}, &server.Options{Versions: versions})
		require.Error(t, err, name)
		require.Panics(t, func() { server.New(&mcp.Implementation{Name: "x", Version: "1"}, &server.Options{Versions: versions}) })
	}
	for _, i := range []*mcp.Implementation{nil, {}} {
		_, err := server.TryNew(i, nil)
		require.Error(t, err)
	}
	_, err := server.TryNew(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	require.NoError(t, err)
}
