package schema_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/schema"
)

type picky string

func (p *picky) UnmarshalText(text []byte) error {
	if string(text) == "bad" {
		return errors.New("picky: bad\ntext")
	}
	*p = picky(text)
	return nil
}

type target struct {
	Name  string            `json:"name"`
	N     int64             `json:"n"`
	Small int8              `json:"small"`
	U     uint64            `json:"u"`
	F     float64           `json:"f"`
	B     []byte            `json:"b"`
	T     time.Time         `json:"t"`
	D     time.Duration     `json:"d"`
	Big   *big.Int          `json:"big"`
	Items []struct{ X int } `json:"items"`
	M     map[string]picky  `json:"m"`
	Any   any               `json:"any"`
	Num   json.Number       `json:"num"`
	Raw   json.RawMessage   `json:"raw"`
}

func TestDecode(t *testing.T) {
	var got target
	raw := []byte(`{"name":"né\ud83d\ude00","n":-9223372036854775808,"small":12e1,"u":18446744073709551615,"f":1e3,"b":"aGk=",` +
		`"t":"2024-02-29T12:00:00.5+02:00","d":1500,"big":205000000000000000000000,"items":[{"X":1.0}],"m":{"k":"v"},"any":[1,null],"num":1.50,"raw":{"a": 1}}`)
	require.NoError(t, schema.Decode(raw, &got))
	assert.Equal(t, "né😀", got.Name)
	assert.Equal(t, int64(-9223372036854775808), got.N)
	assert.Equal(t, int8(120), got.Small)
	assert.Equal(t, uint64(18446744073709551615), got.U)
	assert.InDelta(t, 1000, got.F, 0)
	assert.Equal(t, "hi", string(got.B))
	assert.Equal(t, "2024-02-29T10:00:00.5Z", got.T.UTC().Format(time.RFC3339Nano))
	assert.Equal(t, 1500*time.Nanosecond, got.D)
	assert.Equal(t, "205000000000000000000000", got.Big.String())
	assert.Equal(t, 1, got.Items[0].X)
	assert.Equal(t, map[string]picky{"k": "v"}, got.M)
	assert.Equal(t, []any{1.0, nil}, got.Any)
	clear(raw) // nothing may point into the input
	assert.Equal(t, "né😀", got.Name)
	assert.JSONEq(t, `{"a":1}`, string(got.Raw))
}

func TestDecodeMatchesNamesByCase(t *testing.T) {
	var got target
	require.NoError(t, schema.Decode([]byte(`{"NAME":"x","Name":"y","N":1,"ﬁ":1,"ſmall":3}`), &got))
	assert.Equal(t, target{}, got)
}

func TestDecodeErrorsNameTheField(t *testing.T) {
	tests := []struct{ raw, want string }{
		{`{"name":1}`, `name must be a string`},
		{`{"n":"1"}`, `n must be an integer between -9223372036854775808 and 9223372036854775807`},
		{`{"n":1.5}`, `n must be an integer between -9223372036854775808 and 9223372036854775807`},
		{`{"small":128}`, `small must be an integer between -128 and 127`},
		{`{"u":-1}`, `u must be an integer between 0 and 18446744073709551615`},
		{`{"n":9223372036854775808}`, `n must be an integer between -9223372036854775808 and 9223372036854775807`},
		{`{"n":20500000000000000000}`, `n must be an integer between -9223372036854775808 and 9223372036854775807`}, // wraps to a positive number
		{`{"u":41000000000000000000}`, `u must be an integer between 0 and 18446744073709551615`},
		{`{"big":205000000000000000000000,"any":205000000000000000000000,"items":[{"X":20500000000000000000}]}`, `items[0].X must be an integer between -9223372036854775808 and 9223372036854775807`},
		{`{"items":[{"X":1},{"X":true}]}`, `items[1].X must be an integer between -9223372036854775808 and 9223372036854775807`},
		{`{"items":{}}`, `items must be an array`},
		{`{"t":"yesterday"}`, `t must be a date-time like 2006-01-02T15:04:05Z`},
		{`{"b":"***"}`, `b cannot be decoded: `},
		{`{"m":{"a":"ok","b c":"bad"}}`, `m["b c"] cannot be decoded: `},
		{`{"name":"a"`, `the value cannot be decoded: `},
		{`{} {}`, `the value cannot be decoded: unexpected data after the value`},
		{`[]`, `the value must be an object`},
		{strings.Repeat("[", 5000), `the value nests deeper than 1000`},
	}
	for _, tt := range tests {
		t.Run(tt.raw[:min(40, len(tt.raw))], func(t *testing.T) {
			var got target
			err := schema.Decode([]byte(tt.raw), &got)
			var verr *schema.ValidationError
			require.ErrorAs(t, err, &verr)
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestDecodeNeedsAPointer(t *testing.T) {
	for _, v := range []any{nil, target{}, (*target)(nil)} {
		require.ErrorContains(t, schema.Decode([]byte(`{}`), v), "cannot be decoded")
	}
	require.Error(t, schema.Decode([]byte(`{"n":20500000000000000000}`), nil))
}

type agreed struct {
	Name  string            `json:"name,omitempty" jsonschema:"maxLength=5"`
	N     int               `json:"n,omitempty" jsonschema:"minimum=-5,maximum=300"`
	Small uint8             `json:"small,omitempty"`
	F     float64           `json:"f,omitempty"`
	B     []byte            `json:"b,omitempty"`
	T     time.Time         `json:"t,omitzero"`
	On    bool              `json:"on,omitempty"`
	In    *agreed           `json:"in,omitempty"`
	List  []int32           `json:"list,omitempty"`
	M     map[string]string `json:"m,omitempty"`
}

// What Decode reads is what was validated: writing it again gives a value that conforms and that reads the same.
func FuzzDecodeAgreesWithValidator(f *testing.F) {
	raw, err := schema.For(reflect.TypeFor[agreed]())
	require.NoError(f, err)
	s, err := schema.Compile(raw, nil)
	require.NoError(f, err)
	for _, seed := range []string{
		`{}`, `{"name":"a","n":1,"small":2,"f":1e400,"b":"aGk=","t":"2024-01-01T00:00:00Z","on":true,"in":{"list":[1,2.0]},"m":{"a":"b"}}`,
		`{"n":1,"n":2}`, `{"in":{"n":1},"in":{"name":"x"}}`, `{"Name":"x"}`, `{"n\u0061me":"y"}`, `{"name":"\ud800\udc00\ud800x"}`, "{\"name\":\"\xff\"}",
		`{"n":1e2}`, `{"n":-0.0}`, `{"small":256}`, `{"small":20500000000000000000}`, `{"b":"aGk"}`, "{\"b\":\"aG\\nk=\"}", `{"t":"2024-01-01T23:59:60Z"}`,
		`{"t":"2024-01-01t00:00:00z"}`, `{"list":[1e0,null]}`, `{"m":{"a":"1","\u0061":"2"}}`, `{"n":300.5}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		ready, err := s.Prepare(value)
		if err != nil {
			return
		}
		var got agreed
		if err := schema.Decode(ready, &got); err != nil {
			var verr *schema.ValidationError
			require.ErrorAs(t, err, &verr)
			return // refused later, never read differently
		}
		require.LessOrEqual(t, len([]rune(got.Name)), 5)
		require.True(t, -5 <= got.N && got.N <= 300, "%d", got.N)
		again, err := json.Marshal(got)
		require.NoError(t, err)
		var want, have agreed
		require.NoError(t, schema.Decode(again, &have))
		if plain := (json.Unmarshal(ready, &want)); plain == nil { // fails for 1.0 and 1e2
			a, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, string(a), string(again))
		}
		_, err = s.Prepare(again)
		require.NoError(t, err)
	})
}

// countedDecode is decoded by code of its own, which counts.
type countedDecode struct{}

var decodes int

func (c *countedDecode) UnmarshalJSON([]byte) error { decodes++; return nil }

// JavaScript writes 1e20 as 100000000000000000000.
func TestDecodeManyHugeNumbers(t *testing.T) {
	many := "[" + strings.Repeat("100000000000000000000,", 500) + "1]"
	var got struct {
		F []float64      `json:"f"`
		C *countedDecode `json:"c"`
		N []int64        `json:"n"`
	}
	decodes = 0
	require.NoError(t, schema.Decode([]byte(`{"f":`+many+`,"c":{}}`), &got))
	assert.Len(t, got.F, 501)
	assert.InDelta(t, 1e20, got.F[499], 0)
	assert.LessOrEqual(t, decodes, 2, "the work does not grow with how many there are")
	require.ErrorContains(t, schema.Decode([]byte(`{"f":`+many+`,"n":[1,20500000000000000000]}`), &got),
		"n[1] must be an integer between")
}
