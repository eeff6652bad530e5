package jsonrpc_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func TestAppendCanonical(t *testing.T) {
	for text, want := range map[string]string{
		` 1.0 `:                        `1.0`,
		`[ ]`:                          `[]`,
		`{ }`:                          `{}`,
		` [ 1 , {} , [ ] , null ]`:     `[1,{},[],null]`,
		`{"b":1,"a":2}`:                `{"a":2,"b":1}`,
		`{"\u0062":1, "a" : "\u00e9"}`: `{"a":"é","b":1}`,
		`{"b":{"d":[{"z":1,"y":2}],"c":1},"a":2}`: `{"a":2,"b":{"c":1,"d":[{"y":2,"z":1}]}}`,
		`{"a":2,"b":1,"a":1}`:                     `{"a":2,"a":1,"b":1}`,
		`{"a":{"out":1},"out":{"a":1}}`:           `{"a":{"out":1}}`,
		`{"\u006fut":1}`:                          `{}`,
		`"\ud800"`:                                `"\ud800"`,
		`{"\ud800":1,"\/":"\/\n"}`:                `{"/":"/\n","\ud800":1}`,
	} {
		got := string(jsonrpc.AppendCanonical([]byte("kept "), []byte(text), "out"))
		assert.Equal(t, "kept "+want, got, text)
		again := string(jsonrpc.AppendCanonical(nil, []byte(want), "out"))
		assert.Equal(t, want, again, "it is its own canonical form")
	}
	for _, text := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[`, `[1`, `[1,`, `"a`, `x`, `{1:2}`} {
		jsonrpc.AppendCanonical(nil, []byte(text)) // must not panic
	}
}

// Of the deepest text that is accepted no level is copied for those around it: what is allocated, and so what it
// takes, goes by its length alone.
func TestAppendCanonical_IsLinear(t *testing.T) {
	const size = 1 << 20
	for name, make := range map[string]func(depth int) string{
		"numbers in arrays": func(d int) string { return nested("[", "]", strings.Repeat("1,", size/2)+"1", d) },
		"objects in arrays": func(d int) string { return nested("[", "]", strings.Repeat("{},", size/3)+"1", d) },
		"a text in objects": func(d int) string {
			return nested(`{"b":1,"a":`, "}", `"`+strings.Repeat(`\u0041`, size/6)+`"`, d)
		},
		"unordered members": func(d int) string {
			return nested(`{"b":1,"a":`, "}", `{`+strings.Repeat(`"z":1,"y":1,`, size/12)+`"x":1}`, d)
		},
	} {
		flat, deep := allocated(make(1)), allocated(make(125))
		assert.Lessf(t, deep, 3*flat, "%s: %d bytes, and %d without nesting", name, deep, flat)
	}
}

// allocated is how many bytes are allocated for the canonical form of a text.
func allocated(text string) uint64 {
	raw := []byte(text)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	jsonrpc.AppendCanonical(nil, raw)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func nested(open, closing, inner string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(closing, depth)
}
