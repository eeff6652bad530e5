package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// surrogateEscape finds escapes that encoding/json may replace; it then cannot
// tell which names are equal.
var surrogateEscape = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

const fuzzDepth = 5

func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,2.5e-3,true,null]},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061","reason":"é"}}`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}`,
		`{"jsonrpc":"2.0","\u0069d":1,"id":2,"method":"m"}`, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"\u0061":2}}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`, `[{"jsonrpc":"2.0"}]`, `{"a":[[[[[[]]]]]]}`, "\"\xff\"", `{"id":"\ud800"}`, "", " {} \n",
		`{"jsonrpc":"2.0","method":"m","params":{"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1,"10":1,"11":1,"12":1,"13":1,"14":1,"15":1,"16":1,"17":1,"1":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if deepest(b) > 9_000 {
			return // encoding/json gives up there
		}
		before := bytes.Clone(b)
		lim := jsonrpc.Limits{Depth: fuzzDepth}
		var m jsonrpc.Message
		err := jsonrpc.Scan(b, lim, &m)
		require.Equal(t, before, b, "the input is not written to")

		want := json.Valid(b) && utf8.Valid(b)
		require.Equal(t, want, err == nil || err.Code != jsonrpc.CodeParseError, "valid JSON: %v", err)
		verr := jsonrpc.Valid(b, lim)
		require.Equal(t, want && deepest(b) <= fuzzDepth, verr == nil)
		if !want {
			require.Equal(t, jsonrpc.Message{}.ID, m.ID)
			require.Equal(t, jsonrpc.KindInvalid, m.Kind)
			return
		}
		checkBatch(t, b)
		if surrogateEscape.Match(b) {
			return
		}
		kind, id, method, code := reference(b)
		got := 0
		if err != nil {
			got = err.Code
		}
		require.Equal(t, code, got, "%v", err)
		require.Equal(t, kind, m.Kind)
		if err != nil {
			return
		}
		require.Equal(t, method, m.Method)
		require.Equal(t, id, m.ID)
		var params map[string]json.RawMessage
		if m.Params != nil && json.Unmarshal(m.Params, &params) == nil && m.Method != "" {
			for name, raw := range params {
				v, ok := m.Param(name)
				require.True(t, ok, name)
				require.Equal(t, string(raw), string(v))
				v, ok = jsonrpc.Get(m.Params, name)
				require.True(t, ok, name)
				require.Equal(t, string(raw), string(v))
			}
		}
	})
}

func checkBatch(t *testing.T, b []byte) {
	var want []json.RawMessage
	isArray := bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("["))
	require.Equal(t, isArray, jsonrpc.IsBatch(b))
	if !isArray || json.Unmarshal(b, &want) != nil {
		return
	}
	elements, err := jsonrpc.Batch(b, jsonrpc.Limits{})
	if len(want) == 0 || len(want) > jsonrpc.DefaultBatch {
		require.NotNil(t, err)
		return
	}
	require.Nil(t, err)
	var got []json.RawMessage
	for e := range elements {
		got = append(got, e)
	}
	require.Equal(t, len(want), len(got))
	for k := range want {
		require.Equal(t, string(want[k]), string(got[k]))
	}
}

// reference decides about a valid JSON text by other means: decoded maps.
func reference(b []byte) (kind jsonrpc.Kind, id jsonrpc.ID, method string, code int) {
	const refused = jsonrpc.CodeInvalidRequest
	counts, values, ok := object(b)
	if !ok {
		return jsonrpc.KindInvalid, id, "", refused
	}
	for _, name := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if counts[name] > 1 {
			return jsonrpc.KindInvalid, id, "", refused
		}
	}
	rawID, hasID := values["id"]
	goodID := hasID && strings.ContainsRune(`"-0123456789`, rune(rawID[0]))
	if goodID && rawID[0] == '"' {
		var s string
		_ = json.Unmarshal(rawID, &s)
		id = jsonrpc.StringID(s)
	} else if goodID {
		id, _ = jsonrpc.ParseID(bytes.Clone(rawID))
	}
	rawMethod, hasMethod := values["method"]
	_, hasResult := values["result"]
	rawError, hasError := values["error"]
	switch {
	case hasMethod && !hasResult && !hasError && rawMethod[0] == '"' && !hasID:
		kind = jsonrpc.KindNotification
	case hasMethod && !hasResult && !hasError && rawMethod[0] == '"' && goodID:
		kind = jsonrpc.KindRequest
	case !hasMethod && hasResult && !hasError && goodID:
		kind = jsonrpc.KindResponse
	case !hasMethod && !hasResult && hasError && (goodID || !hasID || string(rawID) == "null"):
		kind = jsonrpc.KindErrorResponse
	}
	if hasMethod {
		_ = json.Unmarshal(rawMethod, &method)
	}
	var version any
	if raw, has := values["jsonrpc"]; has {
		_ = json.Unmarshal(raw, &version)
	}
	params, hasParams := values["params"]
	switch {
	case version != "2.0", kind == jsonrpc.KindInvalid, kind == jsonrpc.KindErrorResponse && rawError[0] != '{', deepest(b) > fuzzDepth:
		code = refused
	case hasParams && hasMethod:
		names, _, ok := object(params)
		if !ok {
			code = jsonrpc.CodeInvalidParams
		}
		for _, n := range names {
			if n > 1 {
				code = jsonrpc.CodeInvalidParams
			}
		}
	}
	return kind, id, method, code
}

// object decodes an object into its values and how often each name occurs.
func object(b []byte) (map[string]int, map[string]json.RawMessage, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, nil, false
	}
	counts, values := map[string]int{}, map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil {
			return nil, nil, false
		}
		counts[name.(string)]++
		values[name.(string)] = raw
	}
	return counts, values, true
}

// deepest returns the deepest nesting of a valid JSON text.
func deepest(b []byte) (most int) {
	n, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			n++
			most = max(most, n)
		case c == '}' || c == ']':
			n--
		}
	}
	return most
}

func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "abc", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é𝄞\u2028<>&", "\xff\xfe", "\xed\xa0\x80", "12345678\n12345678\xc3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := toValid(s)
		raw := jsonrpc.AppendString(nil, s)
		require.Nil(t, jsonrpc.Valid(raw, jsonrpc.Limits{}))
		assert.NotContains(t, string(raw), "\n")
		got, ok := jsonrpc.Unquote(raw)
		require.True(t, ok)
		require.Equal(t, want, got)
		var std string
		require.NoError(t, json.Unmarshal(raw, &std))
		require.Equal(t, want, std)
		std2, err := json.Marshal(s)
		require.NoError(t, err)
		got, ok = jsonrpc.Unquote(std2)
		require.True(t, ok)
		require.Equal(t, want, got, "another encoder's escapes")
		require.Equal(t, jsonrpc.StringID(s), mustID(t, string(std2)), "one spelling for equal ids")
	})
}

// toValid replaces each invalid byte, where strings.ToValidUTF8 replaces runs.
func toValid(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{`7`, `3.7`, `-0`, `1e5`, `"7"`, `""`, `"\u0061"`, `"\ud834\udd1e"`, `"\ud800"`, `null`, `true`, `{}`, ` 1`, `01`, `1e999`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, ok := jsonrpc.ParseID(raw)
		shape := len(raw) > 0 && strings.IndexByte(`"-0123456789`, raw[0]) >= 0 && !bytes.ContainsAny(raw[len(raw)-1:], " \t\r\n")
		valid := shape && json.Valid(raw) && utf8.Valid(raw)
		if !surrogateEscape.Match(raw) {
			require.Equal(t, valid, ok)
		}
		if !ok {
			require.True(t, id.IsZero())
			return
		}
		require.True(t, valid)
		again := mustID(t, id.String())
		require.Equal(t, id, again)
		require.Equal(t, value(t, raw), value(t, []byte(id.String())))
		if !bytes.Contains(raw, []byte(`\`)) {
			require.Equal(t, string(raw), id.String())
		}
		if s, isText := id.Text(); isText {
			require.Equal(t, jsonrpc.StringID(s), id)
		}
	})
}

// value decodes raw, numbers as their texts.
func value(t *testing.T, raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

func FuzzAppendCompact(f *testing.F) {
	for _, seed := range []string{"{\n \"a\" : [ 1,\r\n2 ] }", "\"a\\\nb\"", "\"\\", "[1, 2]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := jsonrpc.AppendCompact(nil, raw)
		require.False(t, bytes.ContainsAny(got, "\r\n"))
		if !json.Valid(raw) {
			return
		}
		var want bytes.Buffer
		require.NoError(t, json.Compact(&want, raw))
		if bytes.ContainsAny(raw, "\r\n") {
			require.Equal(t, want.String(), string(got))
		} else {
			require.Equal(t, string(raw), string(got))
		}
	})
}
