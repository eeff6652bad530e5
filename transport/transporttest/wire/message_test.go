package wire_test

import (
	"testing"

	"github.com/heedmcp/heed/transport/transporttest/wire"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseKeepsWhatWasWritten(t *testing.T) {
	m, err := wire.Parse([]byte(` {"jsonrpc":"2.0","id":9007199254740993,"result":{"a":1.0}} `))
	require.NoError(t, err)
	assert.Equal(t, "9007199254740993", string(m.ID))
	assert.Equal(t, `{"a":1.0}`, string(m.Result))
	assert.True(t, m.IsResponse())
	assert.True(t, m.IsAnswerTo("9007199254740993"))
	assert.False(t, m.IsAnswerTo("9007199254740992"))

	m, err = wire.Parse([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b","params":{"x":"y"}}]`))
	require.NoError(t, err)
	require.Len(t, m.Each(), 2)
	assert.True(t, m.Each()[0].IsRequest())
	assert.True(t, m.Each()[1].IsNotification())
	assert.Equal(t, `"y"`, string(m.Each()[1].Param("x")))
	assert.Nil(t, m.Each()[1].Param("X"))
}

func TestParseRefusesWhatIsNoMessage(t *testing.T) {
	for _, text := range []string{
		``, `garbage`, `{}`, `null`, `1`, `{"jsonrpc":"1.0","method":"x"}`, `{"JSONRPC":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","method":1}`, `{"jsonrpc":"2.0","method":""}`, `{"jsonrpc":"2.0","id":1,"error":"x"}`, `[1]`, `{"jsonrpc":"2.0","method":"x"} x`,
	} {
		_, err := wire.Parse([]byte(text))
		assert.Error(t, err, "%q", text)
	}
}

func TestIDsAreTheSameByKindAndValue(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1`, true}, {`1`, `"1"`, false}, {`1`, `1.0`, false}, {`"a"`, `"a"`, true}, {`"\u0061"`, `"a"`, true}, {`""`, `""`, true}, {``, `""`, false}, {`0`, `""`, false},
	} {
		assert.Equal(t, c.same, wire.SameID(c.a, c.b), "%s %s", c.a, c.b)
	}
}
