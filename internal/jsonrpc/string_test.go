package jsonrpc_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func TestUnquote(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                         "",
		`"abc"`:                      "abc",
		`"é𝄞"`:                       "é𝄞",
		`"\"\\\/\b\f\n\r\t"`:         "\"\\/\b\f\n\r\t",
		`"\u0041\u00e9\u20AC"`:       "Aé€",
		`"\ud834\udd1e\uD834\uDD1E"`: "𝄞𝄞",
		`"\u0000x\uffff"`:            "\x00x\uffff",
		`"\ufffd"`:                   "\ufffd",
		`"\\u0041"`:                  `\u0041`,
	} {
		got, ok := jsonrpc.Unquote([]byte(raw))
		assert.True(t, ok, raw)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range []string{
		``, `"`, `a`, `"a`, `a"`, `"a"x`, ` "a"`, `"a" `, `"a"b"`, `null`, `1`, `["a"]`, "\"\n\"", "\"\xff\"", `"\x"`, `"\u00"`,
		`"\ud800"`, `"\udc00"`, `"\ud800x"`, `"\ud800\n"`, `"\ud800\u0041"`, `"\ud800\ud800"`, `"\udd1e\ud834"`, `"\ud834\ud834\udd1e"`,
	} {
		got, ok := jsonrpc.Unquote([]byte(raw))
		assert.False(t, ok && got != "", raw)
		assert.False(t, ok, raw)
	}
}
