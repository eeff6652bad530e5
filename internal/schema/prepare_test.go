package schema_test

import (
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/schema"
)

const flatText = `{"type":"object","properties":{
	"city":{"type":"string","enum":["a","bé"],"default":"a","description":"where"},
	"count":{"type":"integer","minimum":-1,"maximum":10,"default":5},
	"ratio":{"type":"number"},
	"level":{"type":"number","enum":[1,2]},
	"on":{"type":"boolean","default":true},
	"note":{"type":"string","minLength":1,"maxLength":3},
	"free":{"type":"string"},
	"big":{"type":"integer"}
},"required":["free"],"additionalProperties":false}`

func TestPrepareAddsDefaults(t *testing.T) {
	const nested = `{"type":"object","properties":{
		"a":{"type":"object","properties":{"x":{"default":1},"y":{"default":{"k":[1.0,"<é>"]}}}},
		"list":{"type":"array","items":{"$ref":"#/$defs/item"}},
		"n":{"type":["number","null"],"default":null}},
		"$defs":{"item":{"properties":{"q":{"default":false},"self":{"$ref":"#/$defs/item"}}}},"dependentRequired":{"z":["n"]}}`
	tests := []struct{ schema, args, want string }{
		{flatText, `{"free":""}`, `{"free":"","city":"a","count":5,"on":true}`},
		{flatText, ` { "free" : "x\ny" , "count" : 1 } `, ` { "free" : "x\ny" , "count" : 1 ,"city":"a","on":true} `},
		{`{"type":"object","properties":{"a":{"type":"integer","default":1},"b":{"type":"integer","default":2}}}`, `{}`, `{"a":1,"b":2}`},
		{nested, ``, `{"n":null}`},
		{nested, `{"n":1}`, `{"n":1}`},
		{nested, `{"a":{},"n":1.50}`, `{"a":{"x":1,"y":{"k":[1.0,"<é>"]}},"n":1.50}`},
		{nested, `{"list":[{},{"q":true,"self":{}}], "z" : 0 }`, `{"list":[{"q":false},{"q":true,"self":{"q":false}}], "z" : 0 ,"n":null}`},
		{`{"properties":{"n":{"default":1}}}`, `[{}]`, `[{}]`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			args := []byte(tt.args)
			got, err := compile(t, tt.schema).Prepare(args)
			require.NoError(t, err)
			if len(tt.want) == len(tt.args) {
				assert.Same(t, &args[0], &got[0], "args itself when there is nothing to add")
			} else {
				assert.JSONEq(t, tt.want, string(got))
				assert.Len(t, got, len(tt.want))
			}
			assert.Equal(t, tt.args, string(args), "args must not change")
		})
	}
}

func TestPrepareValidatesWithDefaults(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"type":"integer","default":1},"b":{"type":"integer"}},"maxProperties":1}`)
	_, err := s.Prepare([]byte(`{"b":1}`))
	require.EqualError(t, err, "the value must have at most 1 property, got 2")
	bad := compile(t, `{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}`)
	assert.False(t, bad.Fast())
	_, err = bad.Prepare([]byte(`{}`))
	require.EqualError(t, err, "a must be an integer, got a string")
	required := compile(t, `{"type":"object","properties":{"a":{"type":"integer","default":3}},"required":["a"]}`)
	got, err := required.Prepare(nil)
	require.NoError(t, err)
	assert.Equal(t, `{"a":3}`, string(got))
	require.EqualError(t, required.Validate([]byte(`{}`)), "a is required")
}

func TestAcceptsEverything(t *testing.T) {
	for _, text := range []string{`{}`, `true`} {
		args := []byte(`{"a":1}`)
		got, err := compile(t, text).Prepare(args)
		require.NoError(t, err)
		assert.Same(t, &args[0], &got[0])
	}
}

func TestRefusesNamesGivenTwice(t *testing.T) {
	type inner struct{ X, Y int }
	type in struct {
		A inner          `json:"a"`
		M map[string]int `json:"m,omitempty"`
	}
	raw, err := schema.For(reflect.TypeFor[in]())
	require.NoError(t, err)
	s, err := schema.Compile(raw, nil)
	require.NoError(t, err)
	for _, text := range []string{
		`{"a":{"X":1,"Y":2},"a":{"X":1,"Y":2}}`, `{"a":{"X":1,"Y":2,"\u0058":3}}`, `{"a":{"X":1,"Y":2},"m":{"\ud800":1,"\ud801":2}}`,
	} {
		require.True(t, json.Valid([]byte(text)))
		require.ErrorContains(t, s.Validate([]byte(text)), "is given more than once")
	}
	_, err = compile(t, flatText).Prepare([]byte(`{"free":"a","free":"b"}`))
	require.EqualError(t, err, "free is given more than once")
}

func TestFastPathIsUsed(t *testing.T) {
	for text, want := range map[string]bool{
		flatText: true, `{"type":"object","properties":{}}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`:                               false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`:                                  false,
		`{"type":"object","properties":{"a":{"type":"string"}},"maxProperties":1}`:                              false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{}}`:                      false,
		`{"type":"object","properties":{"a":{"type":"integer","minimum":0.5}}}`:                                 false,
		`{"type":"object","properties":{"a":{"type":"integer","multipleOf":2}}}`:                                false,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{}}`:                 false,
		`{"type":"object","properties":{"a":{"type":"string","default":"no","enum":["yes"]}}}`:                  false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1,"x-mcp-header":"A","title":"a a"}}}`: true,
	} {
		assert.Equal(t, want, compile(t, text).Fast(), text)
	}
}

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"default":{"y":1}}}},"p":{"pattern":"^x"}}}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				got, err := s.Prepare([]byte(`{"a":{},"p":"x"}`))
				assert.NoError(t, err)
				assert.Equal(t, `{"a":{"x":{"y":1}},"p":"x"}`, string(got))
				assert.Error(t, s.Validate([]byte(`{"p":"y"}`)))
			}
		})
	}
	wg.Wait()
}
