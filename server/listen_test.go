package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listening returns a server with a tool, and a peer of the stateless era on a
// stream that it shares.
func listening(t *testing.T) (*server.Server, *peer) {
	s := server.New(&mcp.Implementation{Name: "listen", Version: "1"}, nil)
	addTransient(t, s)
	return s, newPeer(t, s, peerOptions{Version: server.Version20260728})
}

// addTransient registers a tool, which the server announces, anew each time.
func addTransient(t *testing.T, s *server.Server) {
	require.NoError(t, server.AddTool(s, &mcp.Tool{Name: "transient"},
		func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil }))
}

func listen(p *peer, id any, filter M) {
	p.Request(id, "subscriptions/listen", M{"notifications": filter})
}

func subscriptionID(t *testing.T, m *message) string {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	raw := m.Params
	if raw == nil {
		raw = m.Result
	}
	require.NoError(t, json.Unmarshal(raw, &params))
	return string(params.Meta[mcp.MetaKeySubscriptionID])
}

func TestInvariant_L1_AcknowledgementIsFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, p := listening(t)
		listen(p, 1, M{"toolsListChanged": true})
		addTransient(t, s) // may happen before the handler has begun
		time.Sleep(time.Second)
		lines := p.Lines()
		require.NotEmpty(t, lines)
		assert.Equal(t, "notifications/subscriptions/acknowledged", lines[0].Method)
		assert.JSONEq(t, `{"_meta":{"`+mcp.MetaKeySubscriptionID+`":1},"notifications":{"toolsListChanged":true}}`, string(lines[0].Params))
		addTransient(t, s)
		time.Sleep(time.Second)
		assert.NotEmpty(t, p.Sent("notifications/tools/list_changed"))
	})
}

func TestInvariant_L2_OnlyWhatWasAskedForAndIsAdvertised(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, p := listening(t)
		listen(p, 1, M{"promptsListChanged": true, "resourceSubscriptions": []string{"file:///a"}})
		synctest.Wait()
		ack := p.Sent("notifications/subscriptions/acknowledged")
		require.Len(t, ack, 1)
		assert.JSONEq(t, `{"_meta":{"`+mcp.MetaKeySubscriptionID+`":1},"notifications":{}}`, string(ack[0].Params), "no prompts, no resources here")
		addTransient(t, s)
		time.Sleep(time.Second)
		assert.Len(t, p.Lines(), 1, "it did not ask for tools")
	})
}

func TestInvariant_L3_EachMessageCarriesItsSubscription(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, p := listening(t)
		ids := []any{1, "1", json.Number("9007199254740993"), ""}
		for _, id := range ids {
			listen(p, id, M{"toolsListChanged": true})
		}
		synctest.Wait()
		addTransient(t, s)
		time.Sleep(time.Second)
		want := []string{`1`, `"1"`, `9007199254740993`, `""`}
		var acknowledged, told []string
		for _, m := range p.Sent("notifications/subscriptions/acknowledged") {
			acknowledged = append(acknowledged, subscriptionID(t, m))
		}
		for _, m := range p.Sent("notifications/tools/list_changed") {
			told = append(told, subscriptionID(t, m))
		}
		assert.ElementsMatch(t, want, acknowledged)
		assert.ElementsMatch(t, want, told, "each of several subscriptions is told once")

		// Ending one leaves the others.
		p.Cancel("1", "")
		p.Silent("1")
		addTransient(t, s)
		time.Sleep(time.Second)
		assert.Len(t, p.Sent("notifications/tools/list_changed"), 4+3)
	})
}

func TestInvariant_L4_WhoDoesNotReadIsToldOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, p := listening(t)
		gate := make(chan struct{})
		slow := &gatedReply{gate: gate}
		p.ss.Receive([]byte(p.Line(1, "subscriptions/listen", M{"notifications": M{"toolsListChanged": true}})), slow, nil, nil)
		synctest.Wait()
		require.Equal(t, 1, slow.count(), "the acknowledgement, not read yet")
		for range 1000 {
			addTransient(t, s)
			time.Sleep(20 * time.Millisecond) // longer than announcements are merged
		}
		close(gate)
		time.Sleep(time.Second)
		assert.LessOrEqual(t, slow.count(), 3, "a thousand changes are one announcement, or two")
		p.Cancel(1, "")
	})
}

func TestInvariant_L5_TheClientsEndIsSilent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, p := listening(t)
		listen(p, 1, M{"toolsListChanged": true})
		synctest.Wait()
		p.Cancel(1, "enough")
		p.Silent(1)
		assert.Len(t, p.Lines(), 1, "the acknowledgement alone")
		assert.Equal(t, 0, p.s.Stats().Listening)
	})
}

func TestInvariant_L5_TheServersEndIsAnnouncedAndAnswered(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := server.New(&mcp.Implementation{Name: "listen", Version: "1"}, nil)
				addTransient(t, s)
				p := newPeer(t, s, peerOptions{Version: server.Version20260728, Scope: !shared})
				listen(p, 1, M{"toolsListChanged": true})
				synctest.Wait()
				begin := time.Now()
				require.NoError(t, s.Drain(t.Context()))
				assert.Zero(t, time.Since(begin), "a shutdown does not wait for subscriptions")
				answer := p.Answer(1)
				require.Nil(t, answer.Error)
				assert.Equal(t, `1`, subscriptionID(t, answer))
				assert.Contains(t, answer.Raw, `"resultType":"complete"`)
				cancels := p.Sent("notifications/cancelled")
				if !shared {
					assert.Empty(t, cancels, "the end of the stream says it")
					return
				}
				require.Len(t, cancels, 1)
				assert.Contains(t, string(cancels[0].Params), `"requestId":1`)
				lines := p.Lines()
				assert.Equal(t, answer.Raw, lines[len(lines)-1].Raw, "the result comes last")
			})
		})
	}
}

func TestListenRefusesWhatItCannotHonor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := server.New(&mcp.Implementation{Name: "listen", Version: "1"}, &server.Options{MaxSubscriptions: 1})
		addTransient(t, s)
		p := newPeer(t, s, peerOptions{Version: server.Version20260728})
		for id, params := range map[string]M{
			"none":   {},
			"scalar": {"notifications": 7},
			"flag":   {"notifications": M{"toolsListChanged": "yes"}},
			"uris":   {"notifications": M{"resourceSubscriptions": make([]string, 5000)}},
		} {
			p.Request(id, "subscriptions/listen", params)
			assert.Equal(t, -32602, p.Answer(id).Error.Code, id)
		}
		listen(p, 1, M{"toolsListChanged": true})
		synctest.Wait()
		listen(p, 2, M{"toolsListChanged": true})
		assert.Equal(t, -32603, p.Answer(2).Error.Code, "one too many")
		p.Cancel(1, "")
		p.Silent(1)
		listen(p, 3, M{"toolsListChanged": true})
		p.Pending(3)
		assert.Equal(t, 0, s.Stats().InFlight, "subscriptions are not in flight")
		assert.Equal(t, 1, s.Stats().Listening)
	})
}

func TestListenEndsWithItsStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, p := listening(t)
		listen(p, 1, M{"toolsListChanged": true})
		synctest.Wait()
		p.ss.Close(cancellation.Disconnect, "gone")
		p.Silent(1)
		assert.Equal(t, 0, s.Stats().Listening)
	})
}

func TestListenIsUnknownToTheHandshakeEra(t *testing.T) {
	s := server.New(&mcp.Implementation{Name: "listen", Version: "1"}, nil)
	p := newPeer(t, s, peerOptions{})
	listen(p, 1, M{"toolsListChanged": true})
	assert.Equal(t, -32601, p.Answer(1).Error.Code)
}

// gatedReply is a stream whose reader does not read until the gate opens.
type gatedReply struct {
	gate chan struct{}
	n    int // Sends that began; the server calls one at a time
}

func (r *gatedReply) Send([]byte) error {
	r.n++
	<-r.gate
	return nil
}
func (r *gatedReply) Answer([]byte, int) {}
func (r *gatedReply) Silence()           {}
func (r *gatedReply) count() int         { synctest.Wait(); return r.n }
