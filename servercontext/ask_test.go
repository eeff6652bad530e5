package servercontext_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

const all = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

func asking(t *testing.T, answer string) (*servercontext.Request, *host) {
	t.Helper()
	h := &host{answer: func(string, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(answer), nil }}
	return servercontext.New(servercontext.Options{ID: "7", Client: client(t, all), Host: h}), h
}

var schema = json.RawMessage(`{"type":"object","required":["name"],"properties":{
	"name":{"type":"string","minLength":1},"age":{"type":"integer","minimum":0},"color":{"type":"string","enum":["red","blue"],"default":"red"},
	"size":{"type":"number"},"ok":{"type":"boolean"},"tags":{"type":"array","items":{"enum":["a","b"]}}}}`)

// What the user entered is checked against the form, and defaults are filled in.
func TestElicit_Content(t *testing.T) {
	for answer, want := range map[string]M{
		`{"action":"accept","content":{"name":"ann"}}`:                                     {"name": "ann", "color": "red"},
		`{"action":"accept","content":{"name":"ann","color":"blue","age":3,"tags":["a"]}}`: {"name": "ann", "color": "blue", "age": 3.0, "tags": []any{"a"}},
		`{"action":"accept","content":{"name":"ann","size":1.5,"ok":false}}`:               {"name": "ann", "color": "red", "size": 1.5, "ok": false},
		`{"action":"accept"}`:                                          nil,
		`{"action":"accept","content":{}}`:                             nil,
		`{"action":"accept","content":{"name":""}}`:                    nil,
		`{"action":"accept","content":{"name":7}}`:                     nil,
		`{"action":"accept","content":{"name":"ann","age":-1}}`:        nil,
		`{"action":"accept","content":{"name":"ann","age":"3"}}`:       nil,
		`{"action":"accept","content":{"name":"ann","color":"green"}}`: nil,
		`{"action":"accept","content":{"name":"ann","tags":["c"]}}`:    nil,
		`{"action":"accept","content":7}`:                              nil,
		`{"action":"maybe","content":{"name":"ann"}}`:                  nil,
		`{"content":{"name":"ann"}}`:                                   nil,
		`{}`:                                                           nil,
		`7`:                                                            nil,
		`{"action":`:                                                   nil,
	} {
		r, h := asking(t, answer)
		res, err := r.Elicit(t.Context(), &mcp.ElicitParams{Message: "m", RequestedSchema: schema})
		require.Equal(t, []string{"elicitation/create"}, h.asked)
		if want == nil {
			require.Error(t, err, answer)
			continue
		}
		require.NoError(t, err, answer)
		require.Equal(t, want, M(res.Content), answer)
	}
	for _, action := range []string{"decline", "cancel"} {
		r, _ := asking(t, `{"action":"`+action+`"}`)
		res, err := r.Elicit(t.Context(), &mcp.ElicitParams{RequestedSchema: schema})
		require.NoError(t, err, "that is a result")
		require.Equal(t, action, res.Action)
	}
}

// A form that no client could draw is refused before anybody is asked.
func TestElicit_Forms(t *testing.T) {
	for _, bad := range []any{
		M{"type": "array"}, M{}, M{"type": "object", "properties": 7}, "x", 7, []int{}, make(chan int),
		M{"type": "object", "properties": M{"a": M{"type": "object"}}},
		M{"type": "object", "properties": M{"a": M{"type": "array", "items": M{"type": "string"}}}},
		M{"type": "object", "properties": M{"a": M{}}},
		M{"type": "object", "properties": M{"a": true}},
		M{"type": "object", "properties": M{"a": M{"type": "null"}}},
		M{"type": "object", "properties": M{"a": M{"type": "string", "pattern": "("}}},
		json.RawMessage(`{"type":`),
	} {
		r, h := asking(t, `{"action":"accept"}`)
		_, err := r.Elicit(t.Context(), &mcp.ElicitParams{RequestedSchema: bad})
		require.Error(t, err, "%v", bad)
		require.Empty(t, h.asked)
	}
	for _, good := range []any{nil, M{"type": "object"}, schema} {
		r, h := asking(t, `{"action":"decline"}`)
		_, err := r.Elicit(t.Context(), &mcp.ElicitParams{RequestedSchema: good})
		require.NoError(t, err)
		require.Len(t, h.asked, 1)
	}
}

// The mode follows from the URL, and params stay the caller's.
func TestElicit_Mode(t *testing.T) {
	for want, params := range map[string]*mcp.ElicitParams{"form": {Message: "m"}, "url": {URL: "https://example.com", ElicitationID: "e"}} {
		var sent mcp.ElicitParams
		h := &host{answer: func(_ string, raw json.RawMessage) (json.RawMessage, error) {
			require.NoError(t, json.Unmarshal(raw, &sent))
			return json.RawMessage(`{"action":"accept"}`), nil
		}}
		r := servercontext.New(servercontext.Options{Client: client(t, all), Host: h})
		_, err := r.Elicit(t.Context(), params)
		require.NoError(t, err)
		require.Equal(t, want, sent.Mode)
		require.Empty(t, params.Mode)
	}
}

// Without the capability nobody is asked.
func TestAsk_NeedsTheCapability(t *testing.T) {
	h := &host{}
	r := servercontext.New(servercontext.Options{Client: client(t, `{}`), Host: h})
	for _, err := range askEverything(t.Context(), r) {
		require.ErrorContains(t, err, "does not declare the capability")
	}
	require.Empty(t, h.asked)
}

func askEverything(ctx context.Context, r *servercontext.Request) []error {
	_, form := r.Elicit(ctx, &mcp.ElicitParams{})
	_, url := r.Elicit(ctx, &mcp.ElicitParams{Mode: "url"})
	_, sample := r.CreateMessage(ctx, &mcp.CreateMessageParams{})
	_, tools := r.CreateMessageWithTools(ctx, &mcp.CreateMessageWithToolsParams{})
	_, roots := r.ListRoots(ctx)
	return []error{form, url, sample, tools, roots}
}

// Results decode, errors of the host pass, malformed results are errors that repeat
// little of the client's text.
func TestAsk_Results(t *testing.T) {
	r, h := asking(t, `{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}`)
	res, err := r.CreateMessage(t.Context(), &mcp.CreateMessageParams{})
	require.NoError(t, err)
	require.Equal(t, "m", res.Model)
	require.Equal(t, []string{"sampling/createMessage"}, h.asked)
	r, _ = asking(t, `{"roots":[{"uri":"file:///a","name":"a"}]}`)
	roots, err := r.ListRoots(t.Context())
	require.NoError(t, err)
	require.Equal(t, "file:///a", roots.Roots[0].URI)
	var out struct{ N int }
	r, _ = asking(t, `{"n":3}`)
	require.NoError(t, r.Call(t.Context(), "acme/x", M{}, &out))
	require.Equal(t, 3, out.N)
	require.NoError(t, r.Call(t.Context(), "acme/x", nil, nil))
	require.NoError(t, r.Ping(t.Context()))
	require.NoError(t, r.Notify("notifications/acme", nil))

	r, _ = asking(t, `"`+strings.Repeat("text of the client\\n", 10_000)+`"`)
	for _, err := range append(askEverything(t.Context(), r), r.Call(t.Context(), "acme/x", nil, &out)) {
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
		require.NotContains(t, err.Error(), "\n")
	}
	broken := errors.New("no stream")
	r, h = asking(t, ``)
	h.answer = func(string, json.RawMessage) (json.RawMessage, error) { return nil, broken }
	for _, err := range append(askEverything(t.Context(), r), r.Ping(t.Context())) {
		require.ErrorIs(t, err, broken)
	}
}

// From 2025-11-25 on the content of a sampling is one block, or an array of blocks.
func TestCreateMessage_ContentMayBeAnArray(t *testing.T) {
	const head = `{"role":"assistant","model":"m","stopReason":"endTurn","_meta":{"a":1},"content":`
	for content, want := range map[string]mcp.Content{
		`{"type":"text","text":"hi"}`:                      &mcp.TextContent{Text: "hi"},
		`[{"type":"text","text":"hi"}]`:                    &mcp.TextContent{Text: "hi"},
		` [ {"type":"image","data":"","mimeType":"a/b"} ]`: &mcp.ImageContent{Data: []byte{}, MIMEType: "a/b"},
		`[]`: nil,
		`[{"type":"text","text":"a"},{"type":"text"}]`:         nil,
		`[{"type":"tool_use","id":"1","name":"x","input":{}}]`: nil,
		`[{"type":"nonsense"}]`:                                nil,
		`[7]`:                                                  nil,
		`[null]`:                                               nil,
		`"x"`:                                                  nil,
	} {
		r, _ := asking(t, head+content+`}`)
		res, err := r.CreateMessage(t.Context(), &mcp.CreateMessageParams{})
		if want == nil {
			require.ErrorContains(t, err, "sampling/createMessage", content)
			require.NotContains(t, err.Error(), "mcp.", content)
			continue
		}
		require.NoError(t, err, content)
		require.Equal(t, &mcp.CreateMessageResult{
			Meta: mcp.Meta{"a": 1.0}, Content: want, Model: "m", Role: "assistant", StopReason: "endTurn",
		}, res)
	}
}

// Params that are nil are the handler's mistake and no reason to panic; nobody is asked.
func TestAsk_NilParams(t *testing.T) {
	for _, caps := range []string{all, `{}`} {
		h := &host{}
		r := servercontext.New(servercontext.Options{Client: client(t, caps), Host: h})
		_, form := r.Elicit(t.Context(), nil)
		require.EqualError(t, form, "elicitation/create: params must not be nil")
		_, sample := r.CreateMessage(t.Context(), nil)
		require.EqualError(t, sample, "sampling/createMessage: params must not be nil")
		_, tools := r.CreateMessageWithTools(t.Context(), nil)
		require.EqualError(t, tools, "sampling/createMessage: params must not be nil")
		require.Empty(t, h.asked)
	}
}

func TestInputResponses(t *testing.T) {
	h := &host{raw: map[string]json.RawMessage{
		"a": json.RawMessage(`{"action":"accept","content":{"x":1}}`), "b": json.RawMessage(`{"roots":[]}`),
		"c": json.RawMessage(`{"shape":1}`), "d": json.RawMessage(`null`), "e": json.RawMessage(`7`),
	}}
	r := servercontext.New(servercontext.Options{Host: h})
	got := r.InputResponses()
	require.IsType(t, &mcp.ElicitResult{}, got["a"])
	require.IsType(t, &mcp.ListRootsResult{}, got["b"])
	for _, odd := range []string{"d", "e"} {
		require.NotContains(t, got, odd)
	}
	require.Equal(t, "state", r.RequestState())
	h.raw = nil
	require.Nil(t, r.InputResponses())
}
