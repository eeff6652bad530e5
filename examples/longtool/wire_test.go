package main

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// A tap that could not hear anything would prove silence every time.
func TestTapHearsWhatComesAfterTheCancel(t *testing.T) {
	const (
		out = true
		in  = false
	)
	type message struct {
		sent bool
		text string
	}
	call := message{out, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":"call-1"}}}`}
	other := message{out, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":"call-0"}}}`}
	progress := message{in, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-1","progress":1}}`}
	cancel := message{out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`}
	answer := message{in, `{"jsonrpc":"2.0","id":5,"result":{}}`}
	status := message{out, `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{}}`}
	statusAnswer := message{in, `{"jsonrpc":"2.0","id":6,"result":{}}`}
	foreign := []message{
		{in, `{"jsonrpc":"2.0","id":"5","result":{}}`},
		{in, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}`},
		{in, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-0","progress":1}}`},
		{in, `{"jsonrpc":"2.0","id":4,"result":{}}`},
	}

	for _, c := range []struct {
		name     string
		messages []message
		want     silence
	}{
		{"silence", []message{call, progress, cancel, status, statusAnswer}, silence{id: "5"}},
		{"others may speak", append([]message{other, call, cancel, status, statusAnswer}, foreign...), silence{id: "5"}},
		{"a report on its way", []message{call, cancel, progress, status, progress, statusAnswer}, silence{id: "5", crossed: 2}},
		{"an answer on its way", []message{call, cancel, status, answer, statusAnswer}, silence{id: "5", crossed: 1, answered: true}},
		{"a late report", []message{call, cancel, status, statusAnswer, progress}, silence{id: "5", after: 1}},
		{"a late answer", []message{call, cancel, status, statusAnswer, answer}, silence{id: "5", after: 1, answered: true}},
		{"both", []message{call, cancel, progress, status, statusAnswer, progress, answer}, silence{id: "5", crossed: 1, after: 2, answered: true}},
		{"an older call's answer proves nothing", []message{other, call, cancel, foreign[3], progress}, silence{id: "5", crossed: 1}},
		{"not cancelled", []message{call, progress, answer}, silence{id: "5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tap := newTap(methodCancelled)
			for _, m := range c.messages {
				hear(t, tap, m.sent, m.text)
			}
			require.Equal(t, c.want, tap.silence("call-1", nil))
		})
	}
}

// hear lets the tap note one message.
func hear(t *testing.T, tap *tap, sent bool, text string) {
	t.Helper()
	decoded, err := jsonrpc.DecodeMessage([]byte(text))
	require.NoError(t, err)
	tap.note(decoded, sent)
}
