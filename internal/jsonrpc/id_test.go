package jsonrpc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func mustID(t *testing.T, raw string) jsonrpc.ID {
	t.Helper()
	id, ok := jsonrpc.ParseID([]byte(raw))
	require.True(t, ok, raw)
	return id
}

func TestID_ComparesExactly(t *testing.T) {
	different := []string{
		`1`, `"1"`, `1.0`, `1e0`, `3`, `3.7`, `-3`, `0`, `-0`, `""`, `"0"`, `" 1"`,
		`9007199254740992`, `9007199254740993`, `9007199254740994`, `"null"`, `"a"`, `"A"`,
		`123456789012345678901234567890`, `123456789012345678901234567891`, `"é"`, `"e\u0301"`,
	}
	seen := map[jsonrpc.ID]string{}
	for _, raw := range different {
		id := mustID(t, raw)
		other, dup := seen[id]
		assert.False(t, dup, "%s equals %s", raw, other)
		assert.False(t, id.IsZero())
		seen[id] = raw
	}
	same := [][2]string{
		{`"a"`, `"\u0061"`}, {`"/"`, `"\/"`}, {`"é"`, `"\u00e9"`}, {`"\u00E9"`, `"\u00e9"`}, {`"\n"`, `"\u000a"`},
		{`"\u001F"`, `"\u001f"`}, {`"\""`, `"\u0022"`}, {`"\\"`, `"\u005c"`}, {`"𝄞"`, `"\ud834\udd1e"`}, {`"\u007f"`, "\"\x7f\""}, {`"\u2028"`, "\"\u2028\""},
	}
	for _, pair := range same {
		assert.Equal(t, mustID(t, pair[0]), mustID(t, pair[1]), "%s and %s", pair[0], pair[1])
	}
}

func TestID_IsWrittenAsReceived(t *testing.T) {
	for _, raw := range []string{
		`7`, `3.7`, `-0`, `1E+2`, `9007199254740993`, `"7"`, `""`, `"a b"`, `"é<>&"`, `"\n"`, `"\u001f"`, `"\"\\"`, "\"\u2028\x7f\"",
	} {
		id := mustID(t, raw)
		assert.Equal(t, raw, id.String())
		assert.Equal(t, "x"+raw, string(id.Append([]byte("x"))))
		assert.Equal(t, id, id.Clone())
	}
	assert.Equal(t, `"/é𝄞"`, mustID(t, `"\/\u00e9\ud834\udd1e"`).String(), "needless escapes go")
}

func TestID_Zero(t *testing.T) {
	var id jsonrpc.ID
	assert.True(t, id.IsZero())
	assert.Empty(t, id.String())
	assert.Equal(t, "null", string(id.Append(nil)))
	assert.True(t, id.Clone().IsZero())
	_, ok := id.Text()
	assert.False(t, ok)
	_, ok = id.Int64()
	assert.False(t, ok)
}

func TestID_Constructors(t *testing.T) {
	assert.Equal(t, mustID(t, `-5`), jsonrpc.NumberID(-5))
	assert.Equal(t, mustID(t, `9223372036854775807`), jsonrpc.NumberID(math.MaxInt64))
	assert.Equal(t, mustID(t, `"a\"\u0001é"`), jsonrpc.StringID("a\"\x01é"))
	assert.Equal(t, mustID(t, `""`), jsonrpc.StringID(""))
	assert.NotEqual(t, jsonrpc.NumberID(1), jsonrpc.StringID("1"))
	assert.Equal(t, jsonrpc.StringID("\ufffd"), jsonrpc.StringID("\xff"))
}

func TestParseID_Refuses(t *testing.T) {
	for _, raw := range []string{
		``, ` `, `null`, `true`, `{}`, `[]`, `[1]`, `x`, `1x`, ` 1`, `1 `, `01`, `1.`, `-`, `"`, `"a`, `"a"b`, `"a" `, `"\x"`, "\"\n\"", "\"\xff\"", `"\ud800"`, `"\ud800\ud800"`, `"\udc00\ud800"`,
	} {
		id, ok := jsonrpc.ParseID([]byte(raw))
		assert.False(t, ok, raw)
		assert.True(t, id.IsZero(), raw)
	}
}

func TestID_Values(t *testing.T) {
	s, ok := mustID(t, `"\u0061\n"`).Text()
	assert.True(t, ok)
	assert.Equal(t, "a\n", s)
	_, ok = mustID(t, `1`).Text()
	assert.False(t, ok)
	n, ok := mustID(t, `9007199254740993`).Int64()
	assert.True(t, ok)
	assert.Equal(t, int64(9007199254740993), n)
	for _, raw := range []string{`"1"`, `1.0`, `1e1`, `-0`, `9223372036854775808`} {
		_, ok = mustID(t, raw).Int64()
		assert.False(t, ok, raw)
	}
}

// A clone must survive what happens to the buffer of its message.
func TestID_CloneSharesNothing(t *testing.T) {
	raw := []byte(`"abc"`)
	id, _ := jsonrpc.ParseID(raw)
	clone := id.Clone()
	copy(raw, `"xyz"`)
	assert.Equal(t, `"abc"`, clone.String())
}
