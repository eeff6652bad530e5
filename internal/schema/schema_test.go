package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/schema"
)

func compile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(text), nil)
	require.NoError(t, err)
	return s
}

func TestRawKeepsEverything(t *testing.T) {
	text := `{"$schema":"https://json-schema.org/draft/2020-12/schema",` + "\r\n" + `  "type":"object", "$defs":{"address":{"$anchor":"addressDef","type":"object"}},
"properties":{"z":{"$ref":"#addressDef"},"a":{"type":"string","x-mcp-header":"A","pattern":"a\\nb"}},"if":{"required":["a"]},"then":{"required":["z"]},"x-own":[1.0,1e2]}`
	s := compile(t, text)
	assert.Equal(t, strings.NewReplacer("\r", "", "\n", "").Replace(text), string(s.Raw()))
	assert.True(t, s.IsObject())
	require.EqualError(t, s.Validate([]byte(`{"a":"a\nb"}`)), "z is required")
}

func TestIsObject(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"object"}`: true, `true`: false, `{}`: false, `{"type":["object","null"]}`: false, `{"type":"array"}`: false,
	} {
		assert.Equal(t, want, compile(t, text).IsObject(), text)
	}
}

func TestDialects(t *testing.T) {
	for _, uri := range []string{
		"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
		"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-06/schema", "http://json-schema.org/draft-04/schema#",
	} {
		s := compile(t, fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"a":{"type":"integer"}}}`, uri))
		require.NoError(t, s.Validate([]byte(`{"a":1}`)), uri)
		require.Error(t, s.Validate([]byte(`{"a":"1"}`)), uri)
	}
	old := compile(t, `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`)
	require.EqualError(t, old.Validate([]byte(`["a",1]`)), "the value has 1 item too many")
	for _, bad := range []string{`"https://example.com/mine"`, `"https://json-schema.org/draft/2099-01/schema"`, `7`, `"https://json-schema.org/draft/2020-12/meta/core"`} {
		_, err := schema.Compile(json.RawMessage(`{"$schema":`+bad+`}`), nil)
		require.ErrorContains(t, err, "schema: ", bad)
	}
	_, err := schema.Compile(json.RawMessage(`{"$schema":"https://example.com/mine"}`), nil)
	require.EqualError(t, err, `schema: unknown dialect "https://example.com/mine"; known are JSON Schema 2020-12, 2019-09 and drafts 7, 6 and 4`)
}

func TestCompileErrors(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 80) + `{}` + strings.Repeat(`}`, 80)
	tests := map[string]struct{ text, want string }{
		"not JSON":          {`{"type":}`, "is not valid JSON"},
		"trailing data":     {`{} {}`, "unexpected data after the value"},
		"bad keyword":       {`{"type":"strin"}`, "type"},
		"bad number":        {`{"minimum":1e999999999}`, "minimum is a number out of range"},
		"keyword twice":     {`{"type":"string","type":"object"}`, "type is given more than once"},
		"number for schema": {`7`, "not a valid schema"},
		"http ref":          {`{"$ref":"http://127.0.0.1:1/x.json"}`, `reference to "http://127.0.0.1:1/x.json": references must stay inside`},
		"nested http ref":   {`{"properties":{"a":{"items":{"$ref":"https://example.com/x.json#/a"}}}}`, "references must stay inside"},
		"file ref":          {`{"$ref":"file:///etc/passwd"}`, "references must stay inside"},
		"relative ref":      {`{"$ref":"other.json"}`, "other.json"},
		"absolute id":       {`{"$id":"https://example.com/a/b","$ref":"c"}`, `reference to "https://example.com/a/c"`},
		"nested dialect":    {`{"$defs":{"a":{"$id":"urn:x","$schema":"https://example.com/mine"}}}`, "references must stay inside"},
		"missing pointer":   {`{"$ref":"#/$defs/none"}`, "not found"},
		"missing anchor":    {`{"$ref":"#none"}`, "not found"},
		"ref to itself":     {`{"$ref":"#"}`, "refers to itself"},
		"ref circle":        {`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, "refers to itself"},
		"dynamic circle":    {`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, "refers to itself"},
		"too deep":          {deep, "nests deeper than 64"},
		"too many":          {`{"allOf":[` + strings.Repeat(`{},`, 2000) + `{}]}`, "2002 objects and booleans, the limit is 2000"},
		"too many booleans": {`{"allOf":[` + strings.Repeat(`true,`, 2000) + `true]}`, "the limit is 2000"},
		"too large":         {`{"description":"` + strings.Repeat("x", 256<<10) + `"}`, "the limit is 262144"},
		"look-around":       {`{"pattern":"(?=a)"}`, "RE2"},
		"backreference":     {`{"pattern":"(a)\\1"}`, "RE2"},
		"long pattern":      {`{"pattern":"` + strings.Repeat("a", 1001) + `"}`, "1001 characters, the limit is 1000"},
		"large pattern":     {`{"pattern":"(((a{1,10}){1,10}){1,10}b{1,900}){1,9}"}`, "invalid repeat count"},
		"repeated pattern":  {`{"pattern":"[a-z]{1000}(x{0,999}y){0,1}(z{0,999}w){0,1}[^a]{1000}[^b]{1000}[^c]{900}"}`, "steps, the limit is 5000"},
		"many patterns":     {`{"allOf":[` + strings.Repeat(`{"pattern":"a(x{1,30}){1,30}"},`, 3) + manyPatterns() + `]}`, "more than 100000 steps"},
		"property pattern":  {`{"patternProperties":{"(":{}}}`, "missing closing )"},
		"multiplying":       {multiplying(20), "to one value"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile(json.RawMessage(tt.text), nil)
			require.ErrorContains(t, err, tt.want)
			assert.Nil(t, s)
			assert.Less(t, len(err.Error()), 2500)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func manyPatterns() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, `{"pattern":"%d(x{1,30}){1,30}"},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// multiplying applies 2^n subschemas to one value.
func multiplying(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"integer"}}}`, n)
	return b.String()
}

func TestLimitsAreSettable(t *testing.T) {
	text := json.RawMessage(`{"properties":{"a":{"properties":{"b":{"type":"integer"}}}}}`)
	for _, lim := range []schema.Limits{{Depth: 3}, {Subschemas: 3}, {Bytes: 10}} {
		_, err := schema.Compile(text, &lim)
		require.ErrorContains(t, err, "schema: ", lim)
	}
	_, err := schema.Compile(text, &schema.Limits{Depth: 5, Subschemas: 5, Bytes: len(text)})
	require.NoError(t, err)
}

// A validation that would run for minutes is refused within the time of walking its first steps.
func TestValidationIsBounded(t *testing.T) {
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	nested := func(n int, open, leaf, end string) string {
		return strings.Repeat(open, n) + leaf + strings.Repeat(end, n)
	}
	shapes := trees(11) // 16796 different arrays that hash alike in the engine
	tests := map[string]struct{ schema, value string }{
		"two ways down": {`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, nested(100, `{"a":`, `1`, `}`)},
		"two ways down dynamically": {`{"$dynamicAnchor":"n","items":{"anyOf":[{"$dynamicRef":"#n","minItems":9},{"$dynamicRef":"#n","maxItems":0}]}}`,
			nested(100, `[`, ``, `]`)},
		"many items":     {`{"items":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 200) + `{"type":"null"}]}}`, list(100_000, "1")},
		"costly pattern": {`{"items":{"pattern":"(x{1,30}){1,30}y"}}`, list(100, `"`+strings.Repeat("x", 20_000)+`"`)},
		"many patterns":  {`{"items":{"format":"regex"}}`, list(1000, `"(x{1,30}){1,30}"`)},
		"large enum":     {`{"items":{"enum":` + list(20_000, `"abcd"`) + `}}`, list(10_000, `"x"`)},
		"equal hashes":   {`{"uniqueItems":true}`, "[" + strings.Join(shapes, ",") + "]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := compile(t, tt.schema)
			require.True(t, json.Valid([]byte(tt.value)))
			start := time.Now()
			err := s.Validate([]byte(tt.value))
			require.EqualError(t, err, "the value is too large to be validated against this schema")
			require.Less(t, time.Since(start), 10*time.Second)
		})
	}
}

// trees lists all nestings of n empty arrays.
func trees(n int) []string {
	forests := [][]string{{""}} // by number of arrays
	for size := 1; size < n; size++ {
		var all []string
		for first := 1; first <= size; first++ {
			for _, inner := range forests[first-1] {
				for _, rest := range forests[size-first] {
					all = append(all, strings.TrimSuffix("["+inner+"],"+rest, ","))
				}
			}
		}
		forests = append(forests, all)
	}
	out := make([]string, len(forests[n-1]))
	for i, f := range forests[n-1] {
		out[i] = "[" + f + "]"
	}
	return out
}

func TestLargeValuesWithinBounds(t *testing.T) {
	s := compile(t, `{"type":"array","items":{"type":"integer","minimum":0}}`)
	require.NoError(t, s.Validate([]byte("["+strings.Repeat("12345,", 100_000)+"1]")))
	u := compile(t, `{"uniqueItems":true}`)
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, `{"id":%d},`, i)
	}
	require.NoError(t, u.Validate([]byte("["+b.String()+"0]")))
	require.EqualError(t, u.Validate([]byte("["+b.String()+`{"id":7.0}]`)), "the value must have unique items, but items 7 and 20000 are equal")
}

func TestTimeLimit(t *testing.T) {
	text := json.RawMessage(`{"type":"array","items":{"type":"integer"}}`)
	value := []byte("[" + strings.Repeat("1,", 1000) + "1]")
	s, err := schema.Compile(text, &schema.Limits{Time: 10 * time.Microsecond})
	require.NoError(t, err)
	require.ErrorContains(t, s.Validate(value), "too large to be validated")
	require.NoError(t, compile(t, string(text)).Validate(value))
}
