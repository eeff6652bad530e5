package jsonrpc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func scan(t *testing.T, text string) (*jsonrpc.Message, *jsonrpc.Error) {
	t.Helper()
	m := new(jsonrpc.Message)
	return m, jsonrpc.Scan([]byte(text), jsonrpc.Limits{}, m)
}

func TestScan_Accepts(t *testing.T) {
	tests := []struct {
		name, text             string
		kind                   jsonrpc.Kind
		id, method             string
		params, result, errors string
	}{
		{"request", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, jsonrpc.KindRequest, "7", "ping", "", "", ""},
		{"params first", `{"params":{"a":1},"method":"m","id":"x","jsonrpc":"2.0"}`, jsonrpc.KindRequest, `"x"`, "m", `{"a":1}`, "", ""},
		{"white space", " \t\r\n{ \"jsonrpc\" : \"2.0\" ,\n\"id\" : 7 , \"method\":\"m\" , \"params\" : { } } \r\n", jsonrpc.KindRequest, "7", "m", `{ }`, "", ""},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, jsonrpc.KindNotification, "", "notifications/cancelled", `{"requestId":1}`, "", ""},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{"a":[]}}`, jsonrpc.KindResponse, "1", "", "", `{"a":[]}`, ""},
		{"null result", `{"jsonrpc":"2.0","id":1,"result":null}`, jsonrpc.KindResponse, "1", "", "", `null`, ""},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, jsonrpc.KindErrorResponse, "1", "", "", "", `{"code":1}`},
		{"error with null id", `{"jsonrpc":"2.0","id":null,"error":{}}`, jsonrpc.KindErrorResponse, "", "", "", "", `{}`},
		{"error without id", `{"jsonrpc":"2.0","error":{}}`, jsonrpc.KindErrorResponse, "", "", "", "", `{}`},
		{"escaped names", `{"\u006asonrpc":"2\u002e0","\u0069d":1,"m\u0065thod":"p\u0069ng"}`, jsonrpc.KindRequest, "1", "ping", "", "", ""},
		{"names in other case are unknown", `{"jsonrpc":"2.0","ID":1,"method":"m","Method":"n","PARAMS":[]}`, jsonrpc.KindNotification, "", "m", "", "", ""},
		{"unknown members, repeated", `{"jsonrpc":"2.0","x":1,"x":2,"method":"m","":3}`, jsonrpc.KindNotification, "", "m", "", "", ""},
		{"a response's params are nobody's", `{"jsonrpc":"2.0","id":1,"result":1,"params":[]}`, jsonrpc.KindResponse, "1", "", "[]", "1", ""},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, jsonrpc.KindRequest, "1", "", "", "", ""},
		{"repeats inside values", `{"jsonrpc":"2.0","method":"m","params":{"_meta":{"a":1,"a":2},"a":1}}`, jsonrpc.KindNotification, "", "m", `{"_meta":{"a":1,"a":2},"a":1}`, "", ""},
		{"lone surrogate in a value", `{"jsonrpc":"2.0","method":"m","params":{"a":"\ud800"}}`, jsonrpc.KindNotification, "", "m", `{"a":"\ud800"}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := scan(t, tt.text)
			require.Nil(t, err)
			assert.Equal(t, tt.kind, m.Kind)
			assert.Equal(t, tt.id, m.ID.String())
			assert.Equal(t, tt.method, m.Method)
			assert.Equal(t, tt.params, string(m.Params))
			assert.Equal(t, tt.result, string(m.Result))
			assert.Equal(t, tt.errors, string(m.Error))
		})
	}
}

func TestScan_Refuses(t *testing.T) {
	const (
		parse   = jsonrpc.CodeParseError
		request = jsonrpc.CodeInvalidRequest
		params  = jsonrpc.CodeInvalidParams
	)
	tests := []struct {
		name, text string
		code       int
		kind       jsonrpc.Kind
		id         string
	}{
		{"empty", "", parse, jsonrpc.KindInvalid, ""},
		{"blank", " \n", parse, jsonrpc.KindInvalid, ""},
		{"cut off, id known", `{"jsonrpc":"2.0","id":1,"method":"m"`, parse, jsonrpc.KindInvalid, ""},
		{"cut off in params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":`, parse, jsonrpc.KindInvalid, ""},
		{"something behind", `{"jsonrpc":"2.0","id":1,"method":"m"} x`, parse, jsonrpc.KindInvalid, ""},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"m"}{}`, parse, jsonrpc.KindInvalid, ""},
		{"byte order mark", "\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"m"}`, parse, jsonrpc.KindInvalid, ""},
		{"NUL behind", `{"jsonrpc":"2.0","id":1,"method":"m"}` + "\x00", parse, jsonrpc.KindInvalid, ""},
		{"invalid UTF-8", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"` + "\xc3\x28" + `"}}`, parse, jsonrpc.KindInvalid, ""},
		{"no colon", `{"jsonrpc" "2.0"}`, parse, jsonrpc.KindInvalid, ""},
		{"no value", `{"id":`, parse, jsonrpc.KindInvalid, ""},
		{"trailing comma", `{"jsonrpc":"2.0","id":1,"method":"m",}`, parse, jsonrpc.KindInvalid, ""},
		{"trailing comma in params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,}}`, parse, jsonrpc.KindInvalid, ""},
		{"no comma in params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1 "b":2}}`, parse, jsonrpc.KindInvalid, ""},
		{"wrong word", `{"jsonrpc":"2.0","id":nil,"method":"m"}`, parse, jsonrpc.KindInvalid, ""},
		{"cut off in the version", `{"jsonrpc":"2.`, parse, jsonrpc.KindInvalid, ""},

		{"array", `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, request, jsonrpc.KindInvalid, ""},
		{"string", `"x"`, request, jsonrpc.KindInvalid, ""},
		{"empty object", `{}`, request, jsonrpc.KindInvalid, ""},
		{"no version", `{"id":1,"method":"m"}`, request, jsonrpc.KindRequest, "1"},
		{"version 1.0", `{"jsonrpc":"1.0","id":1,"method":"m"}`, request, jsonrpc.KindRequest, "1"},
		{"version as number", `{"jsonrpc":2.0,"method":"m"}`, request, jsonrpc.KindNotification, ""},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`, request, jsonrpc.KindInvalid, ""},
		{"true id", `{"jsonrpc":"2.0","id":true,"method":"m"}`, request, jsonrpc.KindInvalid, ""},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"m"}`, request, jsonrpc.KindInvalid, ""},
		{"array id", `{"jsonrpc":"2.0","id":[1],"method":"m"}`, request, jsonrpc.KindInvalid, ""},
		{"lone surrogate in the id", `{"jsonrpc":"2.0","id":"\ud800","method":"m"}`, request, jsonrpc.KindInvalid, ""},
		{"lone surrogate in the method", `{"jsonrpc":"2.0","id":1,"method":"\udc00"}`, request, jsonrpc.KindInvalid, "1"},
		{"method not a string", `{"jsonrpc":"2.0","id":1,"method":5}`, request, jsonrpc.KindInvalid, "1"},
		{"no method, no result", `{"jsonrpc":"2.0","id":1}`, request, jsonrpc.KindInvalid, "1"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, request, jsonrpc.KindInvalid, "1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, request, jsonrpc.KindInvalid, "1"},
		{"result without id", `{"jsonrpc":"2.0","result":1}`, request, jsonrpc.KindInvalid, ""},
		{"result with null id", `{"jsonrpc":"2.0","id":null,"result":1}`, request, jsonrpc.KindInvalid, ""},
		{"error with true id", `{"jsonrpc":"2.0","id":true,"error":{}}`, request, jsonrpc.KindInvalid, ""},
		{"error not an object", `{"jsonrpc":"2.0","id":1,"error":"x"}`, request, jsonrpc.KindErrorResponse, "1"},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}`, request, jsonrpc.KindInvalid, ""},
		{"id twice, once escaped", `{"jsonrpc":"2.0","id":1,"i\u0064":2,"method":"m"}`, request, jsonrpc.KindInvalid, ""},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}`, request, jsonrpc.KindInvalid, "1"},
		{"params twice", `{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}`, request, jsonrpc.KindInvalid, "1"},
		{"jsonrpc twice", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}`, request, jsonrpc.KindInvalid, "1"},
		{"result twice", `{"jsonrpc":"2.0","id":1,"result":1,"result":1}`, request, jsonrpc.KindInvalid, "1"},
		{"error twice", `{"jsonrpc":"2.0","id":1,"error":{},"error":{}}`, request, jsonrpc.KindInvalid, "1"},
		{"version before params", `{"jsonrpc":"1","id":1,"method":"m","params":[]}`, request, jsonrpc.KindRequest, "1"},

		{"array params", `{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`, params, jsonrpc.KindRequest, "1"},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, params, jsonrpc.KindRequest, "1"},
		{"string params", `{"jsonrpc":"2.0","method":"m","params":"x"}`, params, jsonrpc.KindNotification, ""},
		{"a name twice", `{"jsonrpc":"2.0","params":{"a":1,"b":2,"a":1},"id":1,"method":"m"}`, params, jsonrpc.KindRequest, "1"},
		{"a name twice, first escaped", `{"jsonrpc":"2.0","params":{"\u0061":1,"a":1},"id":1,"method":"m"}`, params, jsonrpc.KindRequest, "1"},
		{"a name twice, then escaped", `{"jsonrpc":"2.0","params":{"a":1,"\u0061":1},"id":1,"method":"m"}`, params, jsonrpc.KindRequest, "1"},
		{"a name twice, both escaped", `{"jsonrpc":"2.0","params":{"\u0041a":1,"A\u0061":1},"id":1,"method":"m"}`, params, jsonrpc.KindRequest, "1"},
		{"an empty name twice", `{"jsonrpc":"2.0","params":{"":1,"":1},"id":1,"method":"m"}`, params, jsonrpc.KindRequest, "1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := scan(t, tt.text)
			require.NotNil(t, err)
			assert.Equal(t, tt.code, err.Code, err.Message)
			assert.Equal(t, tt.kind, m.Kind)
			assert.Equal(t, tt.id, m.ID.String())
			assert.NotEmpty(t, err.Message)
		})
	}
}

// Different lone surrogates are different names, though neither has a text.
func TestScan_SurrogateNamesAreNotConflated(t *testing.T) {
	_, err := scan(t, `{"jsonrpc":"2.0","method":"m","params":{"\ud800":1,"\ud801":2,"\udc00":3,"�":4}}`)
	require.Nil(t, err)
	_, err = scan(t, `{"jsonrpc":"2.0","method":"m","params":{"\ud800":1,"\uD800":2}}`)
	require.NotNil(t, err)
	assert.Equal(t, jsonrpc.CodeInvalidParams, err.Code)
}

func TestScan_ForgetsThePreviousMessage(t *testing.T) {
	var m jsonrpc.Message
	require.Nil(t, jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"b":2}}`), jsonrpc.Limits{}, &m))
	require.Nil(t, jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","method":"n","params":{"c":3}}`), jsonrpc.Limits{}, &m))
	assert.True(t, m.ID.IsZero())
	_, ok := m.Param("a")
	assert.False(t, ok)
	require.Nil(t, jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":2,"error":{}}`), jsonrpc.Limits{}, &m))
	assert.Empty(t, m.Method)
	assert.Nil(t, m.Params)
	_, ok = m.Param("c")
	assert.False(t, ok)
	require.NotNil(t, jsonrpc.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1},`), jsonrpc.Limits{}, &m))
	assert.Equal(t, jsonrpc.Message{}.ID, m.ID)
	assert.Nil(t, m.Params)
	_, ok = m.Param("a")
	assert.False(t, ok)
}

func TestScan_Depth(t *testing.T) {
	message := func(levels int) string { // levels below the message's own object
		return `{"jsonrpc":"2.0","method":"m","params":` + strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels) + `,"id":7}`
	}
	for _, limit := range []int{2, 3, 64, 65, 256, 257, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			var m jsonrpc.Message
			require.Nil(t, jsonrpc.Scan([]byte(message(limit-1)), jsonrpc.Limits{Depth: limit}, &m))
			err := jsonrpc.Scan([]byte(message(limit)), jsonrpc.Limits{Depth: limit}, &m)
			require.NotNil(t, err)
			assert.Equal(t, jsonrpc.CodeInvalidRequest, err.Code)
			assert.Equal(t, "7", m.ID.String(), "the id behind the fault is known")
			assert.Equal(t, jsonrpc.KindRequest, m.Kind)
		})
	}
	var m jsonrpc.Message
	require.Nil(t, jsonrpc.Scan([]byte(message(jsonrpc.DefaultDepth-1)), jsonrpc.Limits{}, &m))
	require.NotNil(t, jsonrpc.Scan([]byte(message(jsonrpc.DefaultDepth)), jsonrpc.Limits{}, &m))

	err := jsonrpc.Scan([]byte(`{"jsonrpc":"2.0"}`), jsonrpc.Limits{Depth: 1}, &m)
	assert.NotContains(t, err.Message, "deeper", "the message's own object is the first level")
	err = jsonrpc.Scan([]byte(strings.Repeat("[", 200)+strings.Repeat("]", 200)), jsonrpc.Limits{}, &m)
	assert.Contains(t, err.Message, "deeper", "what is no message may be too deep as well")
	assert.Equal(t, jsonrpc.CodeInvalidRequest, err.Code)
}

// What is too deep is still told from what is not JSON.
func TestScan_DepthOfHostileText(t *testing.T) {
	const levels = 1 << 20
	open := `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":` + strings.Repeat("[", levels)
	m, err := scan(t, open+strings.Repeat("]", levels)+"}}")
	require.NotNil(t, err)
	assert.Equal(t, jsonrpc.CodeInvalidRequest, err.Code)
	assert.Equal(t, "1", m.ID.String())
	for name, tail := range map[string]string{
		"never closed":  "",
		"one too few":   strings.Repeat("]", levels-1) + "}}",
		"wrong bracket": strings.Repeat("]", levels-1) + "}}}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scan(t, open+tail)
			require.NotNil(t, err)
			assert.Equal(t, jsonrpc.CodeParseError, err.Code)
		})
	}
}

func TestMessage_Param(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var members []string
			for k := range n {
				members = append(members, fmt.Sprintf(`"k\u0030%d" : {"v":%d}`, k, k))
			}
			m, err := scan(t, `{"jsonrpc":"2.0","id":1,"method":"m","params": { `+strings.Join(members, " , ")+` } }`)
			require.Nil(t, err)
			for k := range n {
				v, ok := m.Param(fmt.Sprintf("k0%d", k))
				require.True(t, ok, k)
				assert.Equal(t, fmt.Sprintf(`{"v":%d}`, k), string(v))
			}
			_, ok := m.Param("k")
			assert.False(t, ok)
			_, ok = m.Param("v")
			assert.False(t, ok, "only the own members of params")
		})
	}
	m, err := scan(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":[{"a":1}]}`)
	require.NotNil(t, err)
	_, ok := m.Param("a")
	assert.False(t, ok)
}

func TestScan_RepeatsBeyondTheInlineMembers(t *testing.T) {
	var first strings.Builder
	for k := range 16 {
		fmt.Fprintf(&first, `"k%d":%d,`, k, k)
	}
	tests := map[string]struct {
		more string
		ok   bool
	}{
		"new":                        {`"x":1,"y":2`, true},
		"repeats an inline one":      {`"k3":1`, false},
		"repeats one escaped":        {`"\u006b3":1`, false},
		"repeats a later one":        {`"x":1,"y":2,"x":3`, false},
		"repeats, then new ones":     {`"x":1,"x":2,"y":3,"z":4`, false},
		"lone surrogates, different": {`"\ud800":1,"\ud801":2`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := scan(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{`+first.String()+tt.more+`}}`)
			if tt.ok {
				require.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			assert.Equal(t, jsonrpc.CodeInvalidParams, err.Code)
			assert.Equal(t, "1", m.ID.String())
		})
	}
}

// Comparing all names pairwise would take minutes here.
func TestScan_ManyParamsAreLinear(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0","id":1,"method":"m","params":{`)
	const n = 200_000
	for k := range n {
		fmt.Fprintf(&b, `"%d":0,`, k)
	}
	_, err := scan(t, b.String()+`"last":1}}`)
	require.Nil(t, err)
	_, err = scan(t, b.String()+`"77":1}}`)
	require.NotNil(t, err)
	assert.Equal(t, jsonrpc.CodeInvalidParams, err.Code)
}

func TestScan_SlicesCannotBeAppendedInto(t *testing.T) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`)
	var m jsonrpc.Message
	require.Nil(t, jsonrpc.Scan(text, jsonrpc.Limits{}, &m))
	a, _ := m.Param("a")
	_ = append(m.Params, 'x')
	_ = append(a, 'x')
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`, string(text))
}

func TestScan_DoesNotAllocate(t *testing.T) {
	texts := map[string]string{
		"request":      `{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("héllo \\n", 500) + `"},"_meta":{"progressToken":1}}}`,
		"notification": `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993,"reason":"stop"}}`,
		"response":     `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"x"}]}}`,
		"deep":         `{"jsonrpc":"2.0","id":3,"method":"m","params":` + strings.Repeat(`{"a":`, 120) + `1` + strings.Repeat(`}`, 120) + `}`,
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			b := []byte(text)
			var m jsonrpc.Message
			require.Nil(t, jsonrpc.Scan(b, jsonrpc.Limits{}, &m))
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				if jsonrpc.Scan(b, jsonrpc.Limits{}, &m) != nil {
					panic("refused")
				}
				m.Param("_meta")
				if v, ok := m.Param("requestId"); ok {
					jsonrpc.ParseID(v)
				}
			}))
		})
	}
}

func TestKind_String(t *testing.T) {
	for kind, want := range map[jsonrpc.Kind]string{
		jsonrpc.KindInvalid:       "invalid",
		jsonrpc.KindRequest:       "request",
		jsonrpc.KindNotification:  "notification",
		jsonrpc.KindResponse:      "response",
		jsonrpc.KindErrorResponse: "error response",
		jsonrpc.Kind(99):          "invalid",
	} {
		assert.Equal(t, want, kind.String())
	}
}
