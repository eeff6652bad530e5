package jsonrpc_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func collect(obj string) (got [][2]string) {
	for name, value := range jsonrpc.Members([]byte(obj)) {
		got = append(got, [2]string{name, string(value)})
	}
	return got
}

func TestMembers(t *testing.T) {
	assert.Equal(t, [][2]string{{"a", `{"x":[1]}`}, {"é\n", `"v"`}, {"", `null`}, {"a", `2`}},
		collect(` { "a" : {"x":[1]} , "\u00e9\n":"v", "":null,"a":2 } `))
	assert.Empty(t, collect(`{}`))
	assert.Empty(t, collect(` { } `))
	for _, text := range []string{``, ` `, `null`, `[1]`, `"a"`, `{`, `{"a"`, `{"a":`, `{x}`} {
		assert.Empty(t, collect(text), text)
	}
	assert.Equal(t, [][2]string{{"a", `1`}}, collect(`{"a":1;"b":2}`), "what precedes the fault")
	for name := range jsonrpc.Members([]byte(`{"a":1,"b":2}`)) {
		assert.Equal(t, "a", name, "the loop can be left")
		break
	}
}

func TestGet(t *testing.T) {
	obj := []byte(`{"a":1,"b\u0062":"x","c":{"d":2},"a":3}`)
	for name, want := range map[string]string{"a": "1", "bb": `"x"`, "c": `{"d":2}`} {
		got, ok := jsonrpc.Get(obj, name)
		assert.True(t, ok, name)
		assert.Equal(t, want, string(got))
	}
	for _, name := range []string{"d", "A", "", `b\u0062`} {
		got, ok := jsonrpc.Get(obj, name)
		assert.False(t, ok, name)
		assert.Nil(t, got)
	}
	_, ok := jsonrpc.Get([]byte(`["a",1]`), "a")
	assert.False(t, ok)
	_, ok = jsonrpc.Get(nil, "a")
	assert.False(t, ok)
}

func TestGet_DoesNotAllocate(t *testing.T) {
	obj := []byte(`{"\u0061":1,"b":{"c":[1,2]},"d":4}`)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, ok := jsonrpc.Get(obj, "d"); !ok {
			panic("not found")
		}
	}))
}
