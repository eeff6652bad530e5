package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestFault_CodeZeroIsNeverWritten(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("zero", func(context.Context, *servercontext.Request, tagged) (any, error) {
			return nil, &sdkrpc.Error{Message: "no code"}
		})
		p.Call(1, "zero", nil)
		m := p.Answer(1)
		require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
		require.Equal(t, "no code", m.Error.Message)
	})
}

func TestFault_DataThatIsNoJSONIsLeftOut(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("data", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", &sdkrpc.Error{Code: -31999, Message: "m", Data: json.RawMessage(in.Tag)})
		})
		for id, data := range []string{`{"a":`, "{\"a\":\n1}", `"x" "y"`, `[1]`, ``, "\xff"} {
			p.Call(id, "data", tagged{Tag: data})
			m := p.Answer(id)
			require.Equal(t, -31999, m.Code(), m.Raw)
			if json.Valid([]byte(data)) {
				require.JSONEq(t, data, string(m.Error.Data))
			} else {
				require.Empty(t, m.Error.Data)
			}
		}
	})
}

// Codes that a revision does not have become ones that it has.
func TestFault_CodesPerRevision(t *testing.T) {
	const invalid, params, notFound, url = int(sdkrpc.CodeInvalidRequest), int(sdkrpc.CodeInvalidParams), -32002, int(mcp.CodeURLElicitationRequired)
	for _, version := range server.Versions() {
		stateless := version == server.Version20260728
		want := map[int]int{
			-1: -1, -32601: -32601, 5: 5,
			int(mcp.CodeHeaderMismatch):                    invalid,
			int(mcp.CodeMissingRequiredClientCapabilities): invalid,
			int(mcp.CodeUnsupportedProtocolVersion):        invalid,
			url:                                            invalid,
			notFound:                                       notFound,
		}
		if stateless {
			for _, code := range []int64{mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities, mcp.CodeUnsupportedProtocolVersion} {
				want[int(code)] = int(code)
			}
			want[notFound] = params
		}
		if version == server.Version20251125 {
			want[url] = url
		}
		t.Run(version, func(t *testing.T) {
			inBubbleWith(t, nil, peerOptions{Version: version}, func(t *testing.T, f *fixture, p *peer) {
				f.tool("code", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
					return nil, &sdkrpc.Error{Code: int64(in.N), Message: "m", Data: json.RawMessage(`{"a":1}`)}
				})
				for code, projected := range want {
					p.Call(code, "code", tagged{N: code})
					m := p.Answer(code)
					require.Equal(t, projected, m.Code(), "%d", code)
					require.JSONEq(t, `{"a":1}`, string(m.Error.Data))
				}
			})
		})
	}
}

// Errors of requests that were not accepted, and what they say.
func TestFault_Refusals(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		id   string // of the answer
		code int64  // 0: no answer
	}{
		"no JSON":                {`{"jsonrpc":"2.0","id":1,`, `null`, sdkrpc.CodeParseError},
		"nothing":                {``, `null`, sdkrpc.CodeParseError},
		"number":                 {`7`, `null`, sdkrpc.CodeInvalidRequest},
		"no version":             {`{"id":1,"method":"ping"}`, `1`, sdkrpc.CodeInvalidRequest},
		"wrong version":          {`{"jsonrpc":"1.0","id":"a","method":"ping"}`, `"a"`, sdkrpc.CodeInvalidRequest},
		"null id":                {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, `null`, sdkrpc.CodeInvalidRequest},
		"bool id":                {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `null`, sdkrpc.CodeInvalidRequest},
		"object id":              {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `null`, sdkrpc.CodeInvalidRequest},
		"method number":          {`{"jsonrpc":"2.0","id":1,"method":7}`, `1`, sdkrpc.CodeInvalidRequest},
		"params array":           {`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, `1`, sdkrpc.CodeInvalidParams},
		"params null":            {`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, `1`, sdkrpc.CodeInvalidParams},
		"params twice the same":  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"echo"}}`, `1`, sdkrpc.CodeInvalidParams},
		"method and result":      {`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, `1`, sdkrpc.CodeInvalidRequest},
		"unknown method":         {`{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `1`, sdkrpc.CodeMethodNotFound},
		"empty method":           {`{"jsonrpc":"2.0","id":1,"method":""}`, `1`, sdkrpc.CodeMethodNotFound},
		"method in capitals":     {`{"jsonrpc":"2.0","id":1,"method":"Tools/List"}`, `1`, sdkrpc.CodeMethodNotFound},
		"no prompts":             {`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, `1`, sdkrpc.CodeMethodNotFound},
		"tool without name":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, `1`, sdkrpc.CodeInvalidParams},
		"tool without params":    {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `1`, sdkrpc.CodeInvalidParams},
		"tool name number":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}`, `1`, sdkrpc.CodeInvalidParams},
		"unknown tool":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`, `1`, sdkrpc.CodeInvalidParams},
		"Name is not name":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"echo"}}`, `1`, sdkrpc.CodeInvalidParams},
		"arguments array":        {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}`, `1`, sdkrpc.CodeInvalidParams},
		"level":                  {`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, `1`, sdkrpc.CodeInvalidParams},
		"malformed notification": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`, ``, 0},
		"notification, odd":      {`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`, ``, 0},
		"answer to nothing":      {`{"jsonrpc":"2.0","id":99,"result":{}}`, ``, 0},
		"error to nothing":       {`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, ``, 0},
		"error, malformed":       {`{"jsonrpc":"2.0","id":99,"error":7}`, ``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
				r := p.Raw("", tt.line)
				p.settle()
				m := r.answer()
				if tt.code == 0 {
					require.Nil(t, m)
				} else {
					require.NotNil(t, m)
					require.EqualValues(t, tt.code, m.Code(), m.Raw)
					var raw map[string]json.RawMessage
					require.NoError(t, json.Unmarshal([]byte(m.Raw), &raw))
					require.Equal(t, tt.id, string(raw["id"]))
				}
				p.Call(1, "echo", M{"text": "the next good line works"})
				p.Text(1)
			})
		})
	}
}

// Text of the peer that is repeated in an error is bounded.
func TestFault_TextsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Request(1, long, nil)
		p.Call(2, long, nil)
		for _, id := range []int{1, 2} {
			m := p.Answer(id)
			require.Less(t, len(m.Raw), 700)
			require.NotContains(t, m.Raw, "\ufffd", "it is cut between characters")
		}
	})
}

func TestRegistrationError(t *testing.T) {
	f := newFixture(t, nil)
	err := f.Server.AddRawTool(&mcp.Tool{Name: "a b", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, nil
		})
	var r *server.RegistrationError
	require.ErrorAs(t, err, &r)
	require.Equal(t, "tool", r.Kind)
	require.Equal(t, "a b", r.Name)
	require.Equal(t, r.Err, errors.Unwrap(err))
	require.ErrorContains(t, err, `tool "a b": `)
}
