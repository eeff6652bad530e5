package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// inBatches runs a test in the one revision that has batches.
func inBatches(t *testing.T, test func(t *testing.T, f *fixture, p *peer)) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20250326}, test)
}

// batch sends an array and returns its reply.
func (p *peer) batch(lines ...string) *reply { return p.Raw("batch", "["+strings.Join(lines, ",")+"]") }

// answers are the messages in the array that a batch was answered with, by id.
func (r *reply) batchAnswers(t *testing.T) map[string]*message {
	t.Helper()
	require.NotNil(t, r.answer())
	var all []*message
	require.NoError(t, json.Unmarshal([]byte(r.answer().Raw), &all), r.answer().Raw)
	byID := map[string]*message{}
	for _, m := range all {
		byID[string(m.ID)] = m
	}
	require.Len(t, byID, len(all))
	return byID
}

func TestBatch_AnswersComeTogether(t *testing.T) {
	inBatches(t, func(t *testing.T, f *fixture, p *peer) {
		r := p.batch(
			p.Line(1, "tools/call", callParams("echo", M{"text": "a"})),
			p.Line(2, "tools/call", callParams("cancel_wait", tagged{MS: 1000})),
			p.Line("3", "no/such", nil),
			p.Line(nil, "notifications/acme", nil),
			`7`, `{"jsonrpc":"1.0","id":4,"method":"ping"}`, `{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}`,
			p.Line(6, "initialize", M{"protocolVersion": p.version}),
		)
		p.settle()
		require.Nil(t, r.answer(), "one is not settled")
		all := func() map[string]*message {
			p.await("the batch", func() bool { return r.answer() != nil })
			return r.batchAnswers(t)
		}()
		require.Len(t, all, 7)
		require.Equal(t, "a", all["1"].Text())
		require.Equal(t, "done", all["2"].Text())
		require.EqualValues(t, sdkrpc.CodeMethodNotFound, all[`"3"`].Code())
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, all["null"].Code())
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, all["4"].Code())
		require.EqualValues(t, sdkrpc.CodeInvalidParams, all["5"].Code())
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, all["6"].Code())
	})
}

// Cancelled requests are missing from the array; when all are, nothing is written.
func TestBatch_CancelledRequestsAreMissing(t *testing.T) {
	inBatches(t, func(t *testing.T, f *fixture, p *peer) {
		r := p.batch(
			p.Line(1, "tools/call", callParams("cancel_wait", tagged{Tag: "a"})),
			p.Line(2, "tools/call", callParams("cancel_ignore", tagged{MS: 60_000})),
			p.Line(3, "tools/call", callParams("echo", M{"text": "x"})),
		)
		p.settle()
		p.Cancel(1, "")
		p.Cancel(2, "")
		p.settle()
		require.Len(t, r.batchAnswers(t), 1)
		require.Equal(t, "x", r.batchAnswers(t)["3"].Text())

		r = p.batch(p.Line(1, "tools/call", callParams("cancel_wait", nil)), p.Line(2, "tools/call", callParams("cancel_wait", nil)))
		p.settle()
		p.Cancel(1, "")
		p.settle()
		require.False(t, r.silenced())
		p.Cancel(2, "")
		p.settle()
		require.True(t, r.silenced())
	})
}

// A cancel later in the same batch finds its request.
func TestBatch_CancelInTheSameBatch(t *testing.T) {
	inBatches(t, func(t *testing.T, f *fixture, p *peer) {
		r := p.batch(
			p.Line(1, "tools/call", callParams("cancel_wait", tagged{Tag: "a"})),
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			p.Line(2, "ping", nil),
		)
		p.settle()
		require.Len(t, r.batchAnswers(t), 1)
	})
}

// What has no answer gets none: such a batch ends in silence.
func TestBatch_OfNotificationsOnly(t *testing.T) {
	inBatches(t, func(t *testing.T, f *fixture, p *peer) {
		r := p.batch(p.Line(nil, "notifications/acme", nil), `{"jsonrpc":"2.0","id":9,"result":{}}`)
		p.settle()
		require.True(t, r.silenced())
	})
}

// A malformed notification in a batch has no answer, and the others' are not held up by it.
func TestBatch_MalformedNotification(t *testing.T) {
	inBatches(t, func(t *testing.T, f *fixture, p *peer) {
		r := p.batch(
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`,
			p.Line(1, "ping", nil),
			`{"jsonrpc":"2.0","result":{},"id":5,"params":3}`,
		)
		p.settle()
		require.JSONEq(t, `[{"jsonrpc":"2.0","id":1,"result":{}}]`, r.answer().Raw)
	})
}

// Progress and nested calls of a batch's requests are not part of the array.
func TestBatch_MessagesBeforeTheAnswer(t *testing.T) {
	inBatches(t, func(t *testing.T, f *fixture, p *peer) {
		r := p.batch(
			p.Line(1, "tools/call", callParams("echo", M{"progress": 3}, M{"progressToken": "a"})),
			p.Line(2, "tools/call", callParams("echo", M{"progress": 3}, M{"progressToken": "b"})),
		)
		p.settle()
		require.Len(t, r.batchAnswers(t), 2)
		require.Len(t, p.Sent(progressMethod), 6)
	})
}

func TestBatch_Refused(t *testing.T) {
	for _, version := range server.Versions() {
		inBubbleWith(t, nil, peerOptions{Version: version}, func(t *testing.T, f *fixture, p *peer) {
			for what, line := range map[string]string{"empty": `[]`, "broken": `[{"jsonrpc":"2.0","id":1,"method":"ping"},{]`, "large": "[" + strings.Repeat("1,", 5000) + "1]"} {
				r := p.Raw("batch", line)
				p.settle()
				require.NotNil(t, r.answer(), "%s in %s", what, version)
				require.NotZero(t, r.answer().Code())
				require.Equal(t, "null", string(r.answer().ID))
			}
			r := p.Raw("batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)
			p.settle()
			if version == server.Version20250326 {
				require.Len(t, r.batchAnswers(t), 1)
				return
			}
			require.EqualValues(t, sdkrpc.CodeInvalidRequest, r.answer().Code(), version)
		})
	}
	inBubbleWith(t, nil, peerOptions{Raw: true}, func(t *testing.T, f *fixture, p *peer) {
		r := p.Raw("batch", fmt.Sprintf("[%s]", p.Line(1, "ping", nil)))
		p.settle()
		require.EqualValues(t, sdkrpc.CodeInvalidRequest, r.answer().Code(), "before the handshake there is no revision that has batches")
	})
}

// Many requests of a batch end at the same time.
func TestBatch_ConcurrentEnds(t *testing.T) {
	f := newFixture(t, nil)
	p := newPeer(t, f.Server, peerOptions{Version: server.Version20250326})
	for range 50 {
		var lines []string
		for id := range 20 {
			lines = append(lines, p.Line(id, "tools/call", callParams("echo", M{"progress": 2}, M{"progressToken": id})))
		}
		r := p.batch(lines...)
		for id := range 5 {
			p.Cancel(id*4, "")
		}
		p.await("the batch", func() bool { return r.answer() != nil })
		require.GreaterOrEqual(t, len(r.batchAnswers(t)), 15)
	}
}
