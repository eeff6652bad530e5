package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func TestAppend_Messages(t *testing.T) {
	one, none := jsonrpc.NumberID(1), jsonrpc.ID{}
	pretty := []byte("{\n  \"a\": \"x y\"\r\n}\n")
	tests := []struct {
		name, want string
		got        []byte
	}{
		{"response", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, jsonrpc.AppendResponse(nil, one, []byte(`{"a":1}`))},
		{"empty response", `{"jsonrpc":"2.0","id":1,"result":{}}`, jsonrpc.AppendResponse(nil, one, nil)},
		{"string id", `{"jsonrpc":"2.0","id":"a","result":null}`, jsonrpc.AppendResponse(nil, jsonrpc.StringID("a"), []byte(`null`))},
		{"open response", `{"jsonrpc":"2.0","id":1,"result":[]}`, jsonrpc.CloseResponse(append(jsonrpc.OpenResponse(nil, one), "[]"...))},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no \"x\"\n"}}`, jsonrpc.AppendError(nil, one, jsonrpc.CodeMethodNotFound, "no \"x\"\n", nil)},
		{"error with data, no id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"","data":{"origin":"timeout"}}}`, jsonrpc.AppendError(nil, none, jsonrpc.CodeInternalError, "", []byte(`{"origin":"timeout"}`))},
		{"notification", `{"jsonrpc":"2.0","method":"n/a"}`, jsonrpc.AppendNotification(nil, "n/a", nil)},
		{"notification with params", `{"jsonrpc":"2.0","method":"n","params":{"a":"x y"}}`, jsonrpc.AppendNotification(nil, "n", pretty)},
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, jsonrpc.AppendRequest(nil, one, "ping", nil)},
		{"request with params", `{"jsonrpc":"2.0","id":1,"method":"p","params":{"a":"x y"}}`, jsonrpc.AppendRequest(nil, one, "p", pretty)},
		{"pretty result", `{"jsonrpc":"2.0","id":1,"result":{"a":"x y"}}`, jsonrpc.AppendResponse(nil, one, pretty)},
		{"pretty data", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"a":"x y"}}}`, jsonrpc.AppendError(nil, one, 1, "m", pretty)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, string(tt.got))
			var m jsonrpc.Message
			assert.Nil(t, jsonrpc.Scan(tt.got, jsonrpc.Limits{}, &m), "it reads what it writes")
		})
	}
	assert.Equal(t, `x{"jsonrpc":"2.0","method":"n"}`, string(jsonrpc.AppendNotification([]byte("x"), "n", nil)))
}

func TestAppendString(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `""`,
		"abc":                      `"abc"`,
		"a\"b\\c/":                 `"a\"b\\c/"`,
		"\b\f\n\r\t":               `"\b\f\n\r\t"`,
		"\x00\x01\x1f\x7f":         `"\u0000\u0001\u001f` + "\x7f\"",
		"<script>&'":               `"<script>&'"`,
		"\u2028\u2029":             "\"\u2028\u2029\"",
		"héllo 𝄞":                  `"héllo 𝄞"`,
		"\xff":                     "\"\ufffd\"",
		"a\xc3":                    "\"a\ufffd\"",
		"\xed\xa0\x80":             "\"\ufffd\ufffd\ufffd\"",
		"long enough\xffto cut\n":  "\"long enough\ufffdto cut\\n\"",
		"é is fine\n\xfe is not é": "\"é is fine\\n\ufffd is not é\"",
	} {
		assert.Equal(t, want, string(jsonrpc.AppendString(nil, text)), "%q", text)
	}
	assert.Equal(t, `x"a"`, string(jsonrpc.AppendString([]byte("x"), "a")))
}

func TestAppendString_EveryByteAtEveryOffset(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				b := []byte(strings.Repeat("x", n))
				b[at] = byte(c)
				var back string
				require.NoError(t, json.Unmarshal(jsonrpc.AppendString(nil, string(b)), &back))
				if want := strings.ToValidUTF8(string(b), "\ufffd"); back != want {
					t.Fatalf("%q: got %q", b, back)
				}
			}
		}
	}
}

func TestAppendCompact(t *testing.T) {
	for raw, want := range map[string]string{
		``:                                 ``,
		`{ "a" : 1 }`:                      `{ "a" : 1 }`, // one line already
		"{\n\t\"a b\" : 1\r\n}":            `{"a b":1}`,
		"[\n1,\n\"\\\"x \\\\\" , \"y\"]\r": `[1,"\"x \\","y"]`,
		"\n":                               ``,
		"\r1":                              `1`,
		"\"a\nb\"":                         `"ab"`, // not JSON, but still one line
		"\"a\\\nb":                         `"a\b`,
		"\n\"\\":                           `"\`,
	} {
		assert.Equal(t, want, string(jsonrpc.AppendCompact(nil, []byte(raw))), "%q", raw)
	}
	assert.Equal(t, `x[1]`, string(jsonrpc.AppendCompact([]byte("x"), []byte("[\n1]"))))
}

func TestAppend_DoesNotAllocate(t *testing.T) {
	b := make([]byte, 0, 4096)
	id, result := jsonrpc.StringID("a"), []byte(`{"content":[]}`)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b = jsonrpc.AppendResponse(b[:0], id, result)
		b = jsonrpc.AppendError(b, id, -32603, "broken \"é\"\n", result)
		b = jsonrpc.AppendNotification(b, "notifications/progress", result)
		b = jsonrpc.AppendRequest(b, id, "ping", result)
	}))
}
