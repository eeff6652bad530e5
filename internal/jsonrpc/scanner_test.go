package jsonrpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func TestValid(t *testing.T) {
	good := []string{
		`0`, `-0`, `1`, `-12`, `1.0`, `0.5`, `1e5`, `1E+5`, `1.25e-10`, `123456789012345678901234567890`,
		`true`, `false`, `null`, ` null `, "\t\r\n1",
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u0000\uFFFF\uabCD"`, `"\ud834\udd1e"`, `"\ud800"`, "\"\x7f\"", "\"\u2028é𝄞\"",
		`[]`, `[ ]`, `[1,2]`, `[[],[[]],{}]`, `{}`, `{ }`, `{"a":1}`, `{"a":{"b":[{}]},"":[null]}`, `{"a":1,"a":2}`,
		`[{"a":[1,{"b":2}]},3]`,
	}
	for _, text := range good {
		t.Run(text, func(t *testing.T) {
			require.True(t, json.Valid([]byte(text)), "the oracle agrees")
			assert.Nil(t, jsonrpc.Valid([]byte(text), jsonrpc.Limits{}))
		})
	}
	bad := []string{
		``, ` `, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1.e5`, `1e`, `1e+`, `0x10`, `1_0`, `NaN`, `Infinity`, `-Infinity`, `1 2`, `٣`,
		`t`, `tru`, `truex`, `nul`, `nulL`, `True`, `falze`, `undefined`,
		`"`, `"a`, `"\`, `"\"`, `"\x41"`, `"\u"`, `"\u12"`, `"\u12`, `"\u12g4"`, `"\U0041"`, `"\a"`, `'a'`,
		"\"\n\"", "\"\x00\"", "\"\x1f\"", "\"12345678\x1f\"", "\"\t\"",
		"\"\x80\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\"abcdefgh\xff\"", "\"\xff\\n\"", "\xff", "\"\xe2\\u0041\"",
		`[`, `]`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `[}`, `[1]]`,
		`{`, `}`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1]`, `{]`, `{"a":1 "b":2}`, `{"a"::1}`, `{"a":}`, `{"a"}`, `{null:1}`,
		`{"a":[1,{"b":2]}`, `[{"a":1],1]`, "1\x00", "\v1", "\u00a01", "\ufeff1", `/**/1`, `1//`, `[1,2]x`, `{}{}`, `,`, `:`,
	}
	for _, text := range bad {
		t.Run(text, func(t *testing.T) {
			require.False(t, json.Valid([]byte(text)) && utf8.ValidString(text), "the oracle agrees")
			err := jsonrpc.Valid([]byte(text), jsonrpc.Limits{})
			require.NotNil(t, err)
			assert.Equal(t, jsonrpc.CodeParseError, err.Code)
		})
	}
}

// Whatever is cut off a valid text leaves an invalid one, and no byte behind
// the cut is looked at.
func TestValid_EveryPrefix(t *testing.T) {
	text := `{"k\u00e9y":[true,false,null,-1.5e+10,"é𝄞\ud834\udd1e long enough for eight bytes at once",{}],"b":{"c":[]}}`
	require.Nil(t, jsonrpc.Valid([]byte(text), jsonrpc.Limits{}))
	for n := range len(text) {
		err := jsonrpc.Valid([]byte(text)[:n:n], jsonrpc.Limits{})
		require.NotNil(t, err, text[:n])
		require.Equal(t, jsonrpc.CodeParseError, err.Code)
	}
}

// Every byte at every position within and behind a block of eight.
func TestValid_EveryByteAtEveryOffset(t *testing.T) {
	for n := range 26 {
		for at := range n {
			for c := range 256 {
				b := []byte(`"` + strings.Repeat("x", n) + `"`)
				b[1+at] = byte(c)
				want := json.Valid(b) && utf8.Valid(b)
				if got := jsonrpc.Valid(b, jsonrpc.Limits{}) == nil; got != want {
					t.Fatalf("%q: got %v, want %v", b, got, want)
				}
			}
		}
	}
}

// Two bytes of which the lower may disturb the test of the higher.
func TestValid_BorrowsBetweenBytes(t *testing.T) {
	edge := []byte{0, 1, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff}
	for _, x := range edge {
		for _, y := range edge {
			for at := range 9 {
				b := []byte(`"xxxxxxxxxxxxxxxx"`)
				b[1+at], b[2+at] = x, y
				want := json.Valid(b) && utf8.Valid(b)
				if got := jsonrpc.Valid(b, jsonrpc.Limits{}) == nil; got != want {
					t.Fatalf("%q: got %v, want %v", b, got, want)
				}
			}
		}
	}
}

func TestValid_Depth(t *testing.T) {
	for _, limit := range []int{1, 2, 63, 64, 65, 255, 256, 257, 320} {
		nested := func(n int) []byte {
			var b []byte
			for k := range n {
				b = append(b, []string{`[0,`, `{"a":[],"b":`}[k%2]...)
			}
			b = append(b, '1')
			for k := n - 1; k >= 0; k-- {
				b = append(b, `]}`[k%2])
			}
			return b
		}
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			inner := limit - 1 // the empty array beside each object's value is one deeper
			if inner > 0 {
				require.Nil(t, jsonrpc.Valid(nested(inner), jsonrpc.Limits{Depth: limit}))
			}
			err := jsonrpc.Valid(nested(limit+1), jsonrpc.Limits{Depth: limit})
			require.NotNil(t, err)
			assert.Equal(t, jsonrpc.CodeInvalidRequest, err.Code)
			assert.Contains(t, err.Message, fmt.Sprint(limit))
		})
	}
	assert.Nil(t, jsonrpc.Valid([]byte(`[]`), jsonrpc.Limits{Depth: 1}))
	assert.NotNil(t, jsonrpc.Valid([]byte(`[[]]`), jsonrpc.Limits{Depth: 1}), "an empty container is a level as well")
}

func TestError_NamesTheOffset(t *testing.T) {
	for text, want := range map[string]string{
		`[1,`:               "parse error: unexpected end of input at offset 3 (-32700)",
		`[1 2]`:             "parse error: unexpected '2' at offset 3 (-32700)",
		"[\"a\n\"]":         `parse error: unexpected '\n' at offset 3 (-32700)`,
		"\"12345678\xff\"":  "parse error: unexpected byte 0xff at offset 9 (-32700)",
		"\"12345678é\xe2\"": "parse error: unexpected byte 0xe2 at offset 11 (-32700)",
		`[truth]`:           "parse error: unexpected 't' at offset 4 (-32700)",
		`"\u00zz"`:          "parse error: unexpected 'z' at offset 5 (-32700)",
		`-x`:                "parse error: unexpected 'x' at offset 1 (-32700)",
	} {
		err := jsonrpc.Valid([]byte(text), jsonrpc.Limits{})
		require.NotNil(t, err)
		assert.EqualError(t, err, want)
	}
}
