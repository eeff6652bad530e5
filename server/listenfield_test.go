package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Members that extensions add to subscriptions/listen follow the same rules as the
// protocol's own.
func TestListenField(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20260728, Caps: M{"extensions": M{"com.example/reviews": M{}}}}, func(t *testing.T, f *fixture, p *peer) {
		var changed func(string) // set before the acknowledgement
		var stopped atomic.Int64
		require.NoError(t, f.AddExtension(&server.Extension{ID: "com.example/reviews", Listen: []server.ListenField{{
			Name: "reviews",
			Open: func(_ context.Context, _ *servercontext.Request, asked json.RawMessage, c func(string)) (*server.Listening, error) {
				var names []string
				if json.Unmarshal(asked, &names) != nil {
					return nil, errors.New("want names")
				}
				changed = c
				c(names[0]) // before the acknowledgement
				l := &server.Listening{
					Tell: func(_ context.Context, key string) (string, json.RawMessage) {
						switch key {
						case "silent":
							return "", nil
						case "empty":
							return "notifications/reviews", json.RawMessage(`{}`)
						}
						return "notifications/reviews", json.RawMessage(`{"name":"` + key + `"}`)
					},
					Stop: func() { stopped.Add(1) },
				}
				if len(names) > 1 {
					l.Granted = names[:1]
				}
				return l, nil
			},
		}}}))
		p.Request(1, "subscriptions/listen", M{"notifications": M{"reviews": []string{"a", "b"}, "toolsListChanged": true}})
		p.settle()
		lines := p.Lines()
		require.Len(t, lines, 2)
		assert.Equal(t, "notifications/subscriptions/acknowledged", lines[0].Method)
		assert.Equal(t, M{"toolsListChanged": true, "reviews": []any{"a"}}, lines[0].Param("notifications"))
		assert.Equal(t, "a", lines[1].Param("name"))
		assert.Equal(t, "1", subscriptionID(t, lines[1]))
		for range 100 {
			changed("a")
			changed("silent")
			changed("empty")
		}
		p.settle()
		told := p.Sent("notifications/reviews")
		assert.Less(t, len(told), 20, "what was not told yet is kept once")
		for _, m := range told {
			assert.Equal(t, "1", subscriptionID(t, m))
		}
		p.Cancel(1, "")
		time.Sleep(time.Second)
		p.settle()
		assert.EqualValues(t, 1, stopped.Load())
		p.Silent(1)
		before := len(p.Lines())
		changed("a")
		p.settle()
		assert.Len(t, p.Lines(), before, "a subscription that has ended is silent")

		p.Request(2, "subscriptions/listen", M{"notifications": M{"reviews": []string{"silent"}}})
		p.settle()
		acks := p.Sent("notifications/subscriptions/acknowledged")
		assert.Equal(t, M{}, acks[len(acks)-1].Param("notifications"))
		p.ss.Cancel("2", cancellation.Peer, "")
		p.Request(3, "subscriptions/listen", M{"notifications": M{"reviews": 7}})
		require.NotNil(t, p.Answer(3).Error)
		p.caps = M{}
		p.Request(4, "subscriptions/listen", M{"notifications": M{"reviews": []string{"a"}}})
		assert.Equal(t, -32021, p.Answer(4).Code())
		p.settle()
		assert.Zero(t, f.Stats().Listening)
	})
}
