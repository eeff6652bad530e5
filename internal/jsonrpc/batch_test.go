package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func TestIsBatch(t *testing.T) {
	for _, text := range []string{`[]`, " \r\n\t[1]", `[`} {
		assert.True(t, jsonrpc.IsBatch([]byte(text)), text)
	}
	for _, text := range []string{``, ` `, `{}`, `{"a":[]}`, `"["`, "\x00["} {
		assert.False(t, jsonrpc.IsBatch([]byte(text)), text)
	}
}

func TestBatch(t *testing.T) {
	elements, err := jsonrpc.Batch([]byte(" [ {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} , 1,\"x\", [2] ] \n"), jsonrpc.Limits{})
	require.Nil(t, err)
	var got []string
	for e := range elements {
		got = append(got, string(e))
	}
	assert.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"method":"m"}`, `1`, `"x"`, `[2]`}, got)
	for e := range elements {
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"m"}`, string(e), "it can be ranged over again, and left")
		break
	}
}

func TestBatch_Refuses(t *testing.T) {
	for text, code := range map[string]int{
		``:           jsonrpc.CodeParseError,
		`[`:          jsonrpc.CodeParseError,
		`[1`:         jsonrpc.CodeParseError,
		`[1,]`:       jsonrpc.CodeParseError,
		`[,]`:        jsonrpc.CodeParseError,
		`[{},{"a"}]`: jsonrpc.CodeParseError,
		`[1]x`:       jsonrpc.CodeParseError,
		`[]x`:        jsonrpc.CodeParseError,
		`{`:          jsonrpc.CodeParseError,
		`[]`:         jsonrpc.CodeInvalidRequest,
		` [ ] `:      jsonrpc.CodeInvalidRequest,
		`{}`:         jsonrpc.CodeInvalidRequest,
		`1`:          jsonrpc.CodeInvalidRequest,
	} {
		elements, err := jsonrpc.Batch([]byte(text), jsonrpc.Limits{})
		require.NotNil(t, err, text)
		assert.Equal(t, code, err.Code, text)
		assert.Nil(t, elements, text)
	}
}

func TestBatch_Limit(t *testing.T) {
	ones := func(n int) []byte { return []byte("[1" + strings.Repeat(",1", n-1) + "]") }
	_, err := jsonrpc.Batch(ones(3), jsonrpc.Limits{Batch: 3})
	assert.Nil(t, err)
	_, err = jsonrpc.Batch(ones(4), jsonrpc.Limits{Batch: 3})
	require.NotNil(t, err)
	assert.Equal(t, jsonrpc.CodeInvalidRequest, err.Code)
	_, err = jsonrpc.Batch(ones(jsonrpc.DefaultBatch), jsonrpc.Limits{})
	assert.Nil(t, err)
	_, err = jsonrpc.Batch(ones(jsonrpc.DefaultBatch+1), jsonrpc.Limits{})
	assert.NotNil(t, err)
}

// One message that is too deep does not cost the others their answers.
func TestBatch_DepthIsEachMessages(t *testing.T) {
	elements, err := jsonrpc.Batch([]byte(`[{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":{}}},{"jsonrpc":"2.0","id":2,"method":"m","params":{}}]`), jsonrpc.Limits{})
	require.Nil(t, err)
	var m jsonrpc.Message
	var codes []int
	for e := range elements {
		code := 0
		if err := jsonrpc.Scan(e, jsonrpc.Limits{Depth: 2}, &m); err != nil {
			code = err.Code
		}
		codes = append(codes, code)
	}
	assert.Equal(t, []int{jsonrpc.CodeInvalidRequest, 0}, codes)
}
