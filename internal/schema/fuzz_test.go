package schema_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/schema"
)

// FuzzCompile: no schema and no value panics, hangs, or gets an error of the wrong kind.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		flatText, multiplying(5), `{"$ref":"#"}`, `{"$dynamicAnchor":"n","items":{"$dynamicRef":"#n"}}`, `{"$recursiveAnchor":true,"items":{"$recursiveRef":"#"},"$schema":"https://json-schema.org/draft/2019-09/schema"}`,
		`{"$id":"a","$defs":{"b":{"$id":"b","$anchor":"c"}},"$ref":"b#c"}`, `{"patternProperties":{"^a":{"format":"regex"}},"unevaluatedProperties":false}`,
		`{"if":{"properties":{"a":true}},"then":{"minProperties":1},"else":false,"contentEncoding":"base64","contentMediaType":"application/json"}`,
		`{"prefixItems":[{"multipleOf":0.1}],"contains":{"minimum":1},"uniqueItems":true,"unevaluatedItems":false}`,
		`{"$schema":"http://json-schema.org/draft-04/schema","id":"x","items":[{}],"dependencies":{"a":["b"],"b":{}}}`, `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":1,"b":[{},"x",1.5]}`))
	}
	f.Fuzz(func(t *testing.T, text, value []byte) {
		start := time.Now()
		s, err := schema.Compile(text, &schema.Limits{Subschemas: 200, Bytes: 4096, Time: 10 * time.Millisecond})
		if err != nil {
			require.Nil(t, s)
			return
		}
		_, _ = s.Headers()
		for _, v := range [][]byte{value, text} {
			out, err := s.Prepare(v)
			var verr *schema.ValidationError
			if err != nil {
				require.ErrorAs(t, err, &verr)
				require.NotEmpty(t, verr.Problems)
				require.Less(t, len(err.Error()), 2500)
			} else if json.Valid(v) {
				require.True(t, json.Valid(out), "%s", out)
			}
			fast, slow := s.Validate(v), s.SlowValidate(v)
			if json.Valid(v) && !(fast == nil && errors.As(slow, &verr) && acceptsAll(string(s.Raw()))) {
				require.Equal(t, slow == nil, fast == nil, "%v / %v", fast, slow)
			}
		}
		require.Less(t, time.Since(start), 20*time.Second)
	})
}

// acceptsAll: such a schema does not look at the value, which may then hold a name twice.
func acceptsAll(text string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	m, ok := v.(map[string]any)
	return v == true || ok && len(m) == 0
}

// FuzzPrepare: the fast path accepts exactly what the engine accepts, with the same defaults.
func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{
		`{"free":""}`, `{"free":"x","city":"bé","count":10,"ratio":1e5,"level":2,"on":false,"note":"éé","big":1}`, `{"free":"\u0000","city":"b\u00e9"}`,
		`{"free":"a","count":11}`, `{"free":"a","count":1.0}`, `{"free":"a","count":-0}`, `{"free":"a","level":1.0}`, `{"free":"a","big":1e1001}`, `{"free":"a","ratio":-1.5e-1001}`,
		`{"free":"a","big":00}`, `{"free":"a",}`, `{"free":"a"}}`, `{,"free":"a"}`, `{"free":null}`, `{"free":"a","x":1}`, "{\"free\":\"\xff\",\"note\":\"\xff\xff\xff\xff\"}", `{"fre\u0065":"a"}`, `[]`, ` `, ``,
		`{"free":"a","on":truex}`, `{"free":"a","note":"\u0061"}`, `{"free":"a","note":"abcd"}`, `{"free":"a","free":"b"}`, `{"big":12345678901234567890123,"free":"a"}`,
	} {
		f.Add([]byte(seed))
	}
	s := compile(f, flatText)
	open := compile(f, `{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":0,"default":7},"b":{"type":"string"}}}`)
	require.True(f, s.Fast())
	require.True(f, open.Fast())
	f.Fuzz(func(t *testing.T, args []byte) {
		for _, s := range []*schema.Schema{s, open} {
			fast, fastErr := s.Prepare(args)
			slow, slowErr := s.Slow(args)
			require.Equal(t, slowErr == nil, fastErr == nil, "%v / %v", slowErr, fastErr)
			if slowErr != nil {
				require.Equal(t, slowErr.Error(), fastErr.Error())
				continue
			}
			require.JSONEq(t, string(slow), string(fast))
			require.Equal(t, s.SlowValidate(args) == nil, s.Validate(args) == nil)
		}
	})
}
