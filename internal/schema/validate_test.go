package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/schema"
)

func TestMessages(t *testing.T) {
	tests := []struct{ schema, value, want string }{
		{`{"type":"object","required":["city"]}`, `{}`, `city is required`},
		{`{"type":"object"}`, `[]`, `the value must be an object, got an array`},
		{`{"properties":{"n":{"type":"string"}}}`, `{"n":1}`, `n must be a string, got a number`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":1.5}`, `n must be an integer, got 1.5`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"1"}`, `n must be an integer, got a string`},
		{`{"properties":{"n":{"type":["string","null"]}}}`, `{"n":1}`, `n must be null or a string, got a number`},
		{`{"properties":{"n":{"enum":["a","b"]}}}`, `{"n":"c"}`, `n must be one of "a", "b", got "c"`},
		{`{"properties":{"n":{"const":1}}}`, `{"n":2}`, `n must be 1, got 2`},
		{`{"properties":{"n":{"minimum":1}}}`, `{"n":0}`, `n must be at least 1, got 0`},
		{`{"properties":{"n":{"exclusiveMaximum":0.5}}}`, `{"n":0.5}`, `n must be less than 0.5, got 0.5`},
		{`{"properties":{"n":{"multipleOf":0.1}}}`, `{"n":0.35}`, `n must be a multiple of 0.1, got 0.35`},
		{`{"properties":{"n":{"maximum":9007199254740992}}}`, `{"n":9007199254740993}`, `n must be at most 9007199254740992, got 9007199254740993`},
		{`{"properties":{"n":{"minLength":2}}}`, `{"n":"é"}`, `n must have at least 2 characters, got 1`},
		{`{"properties":{"n":{"pattern":"^a+$"}}}`, `{"n":"b\n\u0007"}`, `n must match the pattern "^a+$", got "b\n\a"`},
		{`{"properties":{"n":{"format":"date-time"}}}`, `{"n":"yesterday"}`, `n must be a date-time like 2006-01-02T15:04:05Z, got "yesterday"`},
		{`{"properties":{"n":{"format":"email"}}}`, `{"n":"x"}`, `n must be an email address, got "x"`},
		{`{"properties":{"n":{"contentEncoding":"base64"}}}`, `{"n":"x"}`, `n must be base64 text`},
		{`{"properties":{"n":{"minItems":1}}}`, `{"n":[]}`, `n must have at least 1 item, got 0`},
		{`{"properties":{"n":{"uniqueItems":true}}}`, `{"n":[1,2,1.0]}`, `n must have unique items, but items 0 and 2 are equal`},
		{`{"properties":{"items":{"items":{"properties":{"name":{"type":"string"}}}}}}`, `{"items":[{},{},{"name":1}]}`, `items[2].name must be a string, got a number`},
		{`{"additionalProperties":{"type":"string"}}`, `{"a b":1,"2":2}`, `["2"] must be a string, got a number; ["a b"] must be a string, got a number`},
		{`{"properties":{"userName":{}},"additionalProperties":false}`, `{"user_name":1}`, `user_name is not a known property; did you mean "userName"?`},
		{`{"properties":{"a":{},"b":{}},"additionalProperties":false}`, `{"c":1}`, `c is not a known property; known are "a", "b"`},
		{`{"additionalProperties":false}`, `{"c":1}`, `c is not a known property; there are none`},
		{`{"anyOf":[{"required":["phone"]},{"required":["email"]}]}`, `{}`, `phone is required (or match another of 2 alternatives)`},
		{`{"properties":{"n":{"oneOf":[{"type":"string"},{"type":"object","required":["k"]}]}}}`, `{"n":{}}`, `n.k is required (or match another of 2 alternatives)`},
		{`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `3`, `the value must match exactly one of the alternatives, but matches number 1 and number 2`},
		{`{"not":{"type":"null"}}`, `null`, `the value must not have this form`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `the value must also have "b" when it has "a"`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `the value must not have a property named "ab": the name must have at most 1 character, got 2`},
		{`{"contains":{"const":1}}`, `[2]`, `the value must have an item of the required kind`},
		{`false`, `1`, `the value is not allowed here`},
		{`{"$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"}}}`, `{"n":null}`, `n must be an integer, got null`},
		{`{"properties":{"n":{"minimum":0}}}`, `{"n":1e99999999}`, `n is a number out of range`},
		{`{"type":"object"}`, `{"a":{"b":[1,{"c":1,"c":2}]}}`, `a.b[1].c is given more than once`},
		{`{"type":"object"}`, `{"a":1`, `the value is not valid JSON: expected ',' at byte 6`},
		{`{"type":"object"}`, strings.Repeat("[", 300) + strings.Repeat("]", 300), ""},
	}
	for _, tt := range tests {
		t.Run(tt.schema+" "+tt.value[:min(40, len(tt.value))], func(t *testing.T) {
			s := compile(t, tt.schema)
			for range 3 { // the engine walks maps in any order
				err := s.Validate([]byte(tt.value))
				var verr *schema.ValidationError
				require.ErrorAs(t, err, &verr)
				if tt.want != "" {
					require.EqualError(t, err, tt.want)
				}
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	s := compile(t, `{"additionalProperties":{"enum":["`+strings.Repeat(strings.Repeat("é", 300)+`","`, 50)+`x"]}}`)
	var b strings.Builder
	for i := range 500 {
		b.WriteString(`,"` + strings.Repeat("k\\n", 40+i) + `":"` + strings.Repeat("v\\u2028", 1000) + `"`)
	}
	err := s.Validate([]byte("{" + b.String()[1:] + "}"))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 2200)
	assert.NotContains(t, err.Error(), "\n")
	assert.Contains(t, err.Error(), " more")
	var verr *schema.ValidationError
	require.ErrorAs(t, err, &verr)
	assert.LessOrEqual(t, len(verr.Problems), 200)
	for _, p := range verr.Problems {
		assert.Less(t, len(p.Path)+len(p.Message), 1000)
	}
}

func TestNumbersAreExact(t *testing.T) {
	s := compile(t, `{"properties":{"n":{"type":"integer","maximum":9007199254740993}},"additionalProperties":false}`)
	for value, ok := range map[string]bool{
		"1": true, "1.0": true, "1e3": true, "-0": true, "0.5": false, "1e-1": false, "10e-1": true,
		"9007199254740993": true, "9007199254740994": false, "9007199254740993.5": false, "123456789012345678901234567890": false,
	} {
		err := s.Validate([]byte(`{"n":` + value + `}`))
		assert.Equal(t, ok, err == nil, value)
	}
}
