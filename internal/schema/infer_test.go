package schema_test

import (
	"encoding/json"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	invopop "github.com/invopop/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/schema"
)

type node struct {
	Name string  `json:"name"`
	Kids []*node `json:"kids,omitempty"`
}

type forest struct {
	Trees map[string]*node `json:"trees"`
	Small point            `json:"small"`
}

type point struct {
	X int `json:"x"`
	Y int `json:"y,omitempty"`
}

type base struct {
	ID string `json:"id"`
}

type embedding struct {
	base
	*point
	Last bool `json:"last"`
}

// Base2 takes the name that base has.
type Base2 struct {
	Ident string `json:"id"`
}

type level string

type ownSchema struct{}

func (ownSchema) JSONSchema() *invopop.Schema {
	return &invopop.Schema{Type: "string", Pattern: "^x"}
}

type custom struct{ v int }

func (c *custom) UnmarshalJSON([]byte) error { c.v = 1; return nil }

type CyclicA struct{ *CyclicB }
type CyclicB struct{ *CyclicA }

func TestFor(t *testing.T) {
	const closed = `,"additionalProperties":false`
	tests := map[string]struct {
		value any
		want  string
	}{
		"empty":     {struct{}{}, `{"type":"object","properties":{}` + closed + `}`},
		"map":       {map[string]int{}, `{"type":"object","additionalProperties":{"type":"integer"}}`},
		"any map":   {map[string]any{}, `{"type":"object"}`},
		"slice":     {[]string{}, `{"type":"array","items":{"type":"string"}}`},
		"any slice": {[]any{}, `{"type":"array","items":{}}`},
		"scalar":    {1, `{"type":"integer"}`},
		"pointer":   {&point{}, `{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}}` + closed + `,"required":["x"]}`},
		"field order": {struct {
			Zebra string `json:"zebra"`
			Apple string `json:"apple"`
		}{}, `{"type":"object","properties":{"zebra":{"type":"string"},"apple":{"type":"string"}}` + closed + `,"required":["zebra","apple"]}`},
		"optional": {struct {
			A *int `json:"a"`
			B *int `json:"b,omitempty"`
			C *int `json:"c,omitzero"`
			D *int `json:"d,omitempty" jsonschema:"nullable"`
			e int
		}{}, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"d":{"oneOf":[{"type":"integer"},{"type":"null"}]}}` + closed + `,"required":["a"]}`},
		"tags": {struct {
			City  string   `json:"city" jsonschema:"title=The city,enum=a,enum=b,default=a" jsonschema_description:"one, or <two> & \"more\""`
			Count int      `json:"count,omitempty" jsonschema:"minimum=1,maximum=10,default=5,description=how many\\, at most"`
			Ratio float64  `json:"ratio,omitempty" jsonschema:"exclusiveMinimum=0,multipleOf=0.5"`
			On    bool     `json:"on,omitempty" jsonschema:"default=true"`
			Level level    `json:"level" jsonschema:"enum=low,enum=high"`
			List  []string `json:"list" jsonschema:"minItems=1,enum=x,enum=y"`
			Code  string   `json:"code" jsonschema:"pattern=^[a-z]{2\\,3}$"`
		}{}, `{"type":"object","properties":{` +
			`"city":{"type":"string","title":"The city","description":"one, or <two> & \"more\"","enum":["a","b"],"default":"a"},` +
			`"count":{"type":"integer","description":"how many, at most","maximum":10,"minimum":1,"default":5},` +
			`"ratio":{"type":"number","multipleOf":0.5,"exclusiveMinimum":0},` +
			`"on":{"type":"boolean","default":true},` +
			`"level":{"type":"string","enum":["low","high"]},` +
			`"list":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1},` +
			`"code":{"type":"string","pattern":"^[a-z]{2,3}$"}}` + closed + `,"required":["city","level","list","code"]}`},
		"types": {struct {
			Bytes    []byte          `json:"bytes"`
			Time     time.Time       `json:"time"`
			Duration time.Duration   `json:"duration"`
			Any      any             `json:"any"`
			Raw      json.RawMessage `json:"raw"`
			Number   json.Number     `json:"number"`
			Unsigned uint16          `json:"unsigned"`
			Big      *big.Int        `json:"big"`
			IP       net.IP          `json:"ip"`
			Addr     netip.Addr      `json:"addr"`
			Level    slog.Level      `json:"level"`
			Custom   custom          `json:"custom"`
			Own      ownSchema       `json:"own"`
			Text     int             `json:"text,string"`
			Pair     [2]bool         `json:"pair"`
		}{}, `{"type":"object","properties":{` +
			`"bytes":{"type":"string","contentEncoding":"base64"},"time":{"type":"string","format":"date-time"},` +
			`"duration":{"type":"integer"},"any":{},"raw":{},"number":{"type":"number"},"unsigned":{"type":"integer","minimum":0},` +
			`"big":{"type":"integer"},"ip":{"type":"string"},"addr":{"type":"string"},"level":{"type":"string"},"custom":{},` +
			`"own":{"type":"string","pattern":"^x"},"text":{"type":"string"},` +
			`"pair":{"type":"array","items":{"type":"boolean"},"maxItems":2,"minItems":2}}` + closed +
			`,"required":["bytes","time","duration","any","raw","number","unsigned","big","ip","addr","level","custom","own","text","pair"]}`},
		"embedded": {struct {
			base
			point
			Last bool `json:"last"`
		}{}, `{"type":"object","properties":{"id":{"type":"string"},"x":{"type":"integer"},"y":{"type":"integer"},"last":{"type":"boolean"}}` + closed + `,"required":["id","x","last"]}`},
		"header": {struct {
			Region string `json:"region" mcp_header:"Region" jsonschema:"enum=eu,enum=us"`
			Level  int    `json:"level"`
		}{}, `{"type":"object","properties":{"region":{"type":"string","enum":["eu","us"],"x-mcp-header":"Region"},"level":{"type":"integer"}}` + closed + `,"required":["region","level"]}`},
		"recursive": {node{}, `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}` + closed + `,"required":["name"],` +
			`"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}` + closed + `,"required":["name"]}}}`},
		"recursive inside": {forest{}, `{"type":"object","properties":{"trees":{"type":"object","additionalProperties":{"$ref":"#/$defs/node"}},"small":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}}` + closed + `,"required":["x"]}}` + closed + `,"required":["trees","small"],` +
			`"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}` + closed + `,"required":["name"]}}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := schema.For(reflect.TypeOf(tt.value))
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(raw))
			s, err := schema.Compile(raw, nil)
			require.NoError(t, err)
			assert.Equal(t, string(raw), string(s.Raw()))
		})
	}
}

func TestForErrors(t *testing.T) {
	type twice struct {
		A struct{ X int } `json:"X"`
		base
		*Base2
	}
	type shadow struct {
		base
		ID int `json:"id"`
	}
	tests := map[string]struct {
		value any
		want  string
	}{
		"nil":              {nil, "nil type"},
		"chan":             {struct{ C chan int }{}, "field C: chan int has no JSON form"},
		"func":             {struct{ F func() }{}, "no JSON form"},
		"complex":          {[]complex128{}, "[*]: complex128 has no JSON form"},
		"int keys":         {map[int]string{}, "keys must be strings"},
		"nested int keys":  {struct{ M []map[int]string }{}, "field M: [*]: map[int]string: keys must be strings"},
		"cyclic embedding": {CyclicA{}, "embeds itself"},
		"name twice":       {twice{}, `the name "id" is taken`},
		"shadowed name":    {shadow{}, `the name "id" is taken`},
		"unexported ptr":   {embedding{}, "pointer to an unexported struct"},
		"url":              {struct{ U *url.URL }{}, "use a string with format=uri"},
		"free text": {struct {
			A string `jsonschema:"the city"`
		}{}, `"the city" is not keyword=value`},
		"typo": {struct {
			A int `jsonschema:"minium=1"`
		}{}, `"minium" is no keyword for an integer`},
		"wrong type": {struct {
			A int `jsonschema:"minLength=1"`
		}{}, `"minLength" is no keyword for an integer`},
		"bad number": {struct {
			A int `jsonschema:"minimum=one"`
		}{}, "minimum=one is not a number"},
		"bad default": {struct {
			A int `json:"a" jsonschema:"minimum=3,default=1"`
		}{}, `default 1 at "#/properties/a" does not conform`},
		"bad pattern": {struct {
			A string `json:"a" jsonschema:"pattern=(?=x)"`
		}{}, "regex"},
		"bad header": {struct {
			A string `mcp_header:"a b"`
		}{}, `"a b" is not a header name`},
		"header type": {struct {
			A float64 `mcp_header:"A"`
		}{}, "needs a string, an integer or a boolean"},
		"header twice": {struct {
			A string `mcp_header:"X"`
			B struct {
				C string `mcp_header:"x"`
			}
		}{}, "is given twice"},
		"header in items": {struct {
			A []struct {
				C string `mcp_header:"x"`
			}
		}{}, "by properties alone"},
		"inline": {struct {
			A point `json:",inline"`
		}{}, "inline is not supported"},
		"dash": {struct {
			//lint:ignore SA5008 the tag is the mistake that is to be found
			A int `json:"-,"`
		}{}, `"-" is not supported`},
		"quoted name": {struct {
			//lint:ignore SA5008 the tag is the mistake that is to be found
			A int `json:"a'b"`
		}{}, "is not a valid name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := schema.For(reflect.TypeOf(tt.value))
			require.ErrorContains(t, err, tt.want)
			assert.Nil(t, raw)
		})
	}
}

func TestForSameNamesAreTwoDefinitions(t *testing.T) {
	type node struct { // not the one above
		Other []node `json:"other,omitempty"`
	}
	type both struct {
		A node   `json:"a"`
		B forest `json:"b"`
	}
	raw, err := schema.For(reflect.TypeFor[both]())
	require.NoError(t, err)
	s, err := schema.Compile(raw, nil)
	require.NoError(t, err)
	require.NoError(t, s.Validate([]byte(`{"a":{"other":[{"other":[]}]},"b":{"trees":{"t":{"name":"n"}},"small":{"x":1}}}`)))
	require.EqualError(t, s.Validate([]byte(`{"a":{"other":[{"name":"n"}]},"b":{"trees":{},"small":{"x":1}}}`)),
		`a.other[0].name is not a known property; known are "other"`)
}

type wide0 struct{ A, B, C, D, E, F, G, H, I, J wide1 }
type wide1 struct{ A, B, C, D, E, F, G, H, I, J wide2 }
type wide2 struct{ A, B, C, D, E, F, G, H, I, J wide3 }
type wide3 struct{ A, B, C, D, E, F, G, H, I, J int }

func TestForDoesNotMultiply(t *testing.T) {
	raw, err := schema.For(reflect.TypeFor[wide0]())
	require.NoError(t, err)
	assert.Less(t, len(raw), 64<<10, "10 000 leaves, if every use were written out")
	_, err = schema.Compile(raw, nil)
	require.NoError(t, err)
}

func TestHeaders(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
		"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Level"}}},"x-mcp-header":{"type":"number"}},"default":{"x-mcp-header":1}}`)
	got, err := s.Headers()
	require.NoError(t, err)
	assert.Equal(t, []schema.Header{{"Level", []string{"deep", "n"}, "integer"}, {"Region", []string{"region"}, "string"}}, got)
	for _, bad := range []string{
		`{"x-mcp-header":"A","type":"string"}`,
		`{"properties":{"a":{"x-mcp-header":"","type":"string"}}}`,
		`{"properties":{"a":{"x-mcp-header":7,"type":"string"}}}`,
		`{"properties":{"a":{"x-mcp-header":"A","type":"number"}}}`,
		`{"properties":{"a":{"items":{"x-mcp-header":"A","type":"string"}}}}`,
		`{"anyOf":[{"properties":{"a":{"x-mcp-header":"A","type":"string"}}}]}`,
		`{"$defs":{"d":{"x-mcp-header":"A","type":"string"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`,
		`{"properties":{"a":{"x-mcp-header":"A","type":"string"},"b":{"x-mcp-header":"a","type":"string"}}}`,
	} {
		_, err := compile(t, bad).Headers()
		require.Error(t, err, bad)
	}
}

func TestForOutputAcceptsWhatIsWritten(t *testing.T) {
	type out struct {
		List   []string          `json:"list"`
		Short  []string          `json:"short,omitempty"`
		M      map[string]int    `json:"m"`
		P      *point            `json:"p"`
		Level  *level            `json:"level" jsonschema:"enum=low,enum=high"`
		B      []byte            `json:"b"`
		Raw    json.RawMessage   `json:"raw"`
		IP     net.IP            `json:"ip"`
		Node   *node             `json:"node"`
		Nested struct{ L []int } `json:"nested"`
		Pair   [1]*int           `json:"-"`
		Said   *int              `json:"said" jsonschema:"nullable"`
	}
	raw, err := schema.ForOutput(reflect.TypeFor[out]())
	require.NoError(t, err)
	s, err := schema.Compile(raw, nil)
	require.NoError(t, err)
	require.True(t, s.IsObject())
	assert.NotContains(t, string(raw), "heed-null")
	assert.Contains(t, string(raw), `"list":{"type":["array","null"],"items":{"type":"string"}},"short":{"type":"array","items":{"type":"string"}},`)
	high, one := level("high"), 1
	for _, v := range []out{{}, {
		List: []string{"a"}, Short: []string{"b"}, M: map[string]int{"a": 1}, P: &point{}, Level: &high, B: []byte("x"),
		Raw: json.RawMessage(`[1]`), IP: net.IPv4zero, Node: &node{Kids: []*node{{}}}, Said: &one,
	}} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, s.Validate(text), string(text))
	}
	for name, bad := range map[string]string{"list": `1`, "list ": `[]`, "level": `"medium"`, "node": `{}`, "nested": `null`} {
		text, err := json.Marshal(out{})
		require.NoError(t, err)
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &members))
		members[name] = json.RawMessage(bad)
		text, err = json.Marshal(members)
		require.NoError(t, err)
		require.ErrorContains(t, s.Validate(text), strings.TrimSpace(name))
	}
	input, err := schema.For(reflect.TypeFor[out]())
	require.NoError(t, err)
	assert.Contains(t, string(input), `"list":{"type":"array","items":{"type":"string"}}`)
}
