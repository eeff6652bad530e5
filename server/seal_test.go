package server_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

// A state that was made up is refused before its request is digested, however large and deep that is. Anybody can
// send one.
func TestAMadeUpStateCostsNothing(t *testing.T) {
	s := server.New(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "x"}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil })
	deep := strings.Repeat("[", 100) + strings.Repeat("1,", 1<<19) + "1" + strings.Repeat("]", 100)
	msg := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"deep":` + deep + `},"requestState":"` +
		strings.Repeat("A", 400) + `","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	var before, after runtime.MemStats
	code := 0
	runtime.ReadMemStats(&before)
	s.Stateless().Receive(msg, answerFunc(func(_ []byte, c int) { code = c }), &server.Extra{Stateless: true}, run)
	runtime.ReadMemStats(&after)
	assert.Equal(t, -32602, code)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(msg)/4), "nothing of it was copied")
}

// Of two members of one name in the arguments a reader may take either: a retry must have both, in their order.
func TestInvariant_P4_ARetryHasTheSameMembers(t *testing.T) {
	s := fuzzServer()
	const head = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"returning","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"arguments":`
	ask := func(arguments, state string) (code int, m message) {
		s.Stateless().Receive([]byte(head+arguments+state+`}}`), answerFunc(func(msg []byte, c int) {
			code = c
			assert.NoError(t, json.Unmarshal(msg, &m))
		}), &server.Extra{Stateless: true}, run)
		return code, m
	}
	_, first := ask(`{"text":"a"}`, "")
	state, _ := first.State(t)
	code, _ := ask(`{"text":"b","text":"a"}`, `,"requestState":"`+state+`"`)
	assert.Equal(t, -32602, code)
	code, _ = ask(` { "text" : "\u0061" } `, `,"requestState":"`+state+`"`)
	assert.Zero(t, code)
}
