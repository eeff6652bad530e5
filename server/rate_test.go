package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A burst, then the rate; a pause fills the burst again, and no more than that.
func TestLimit_BurstAndRate(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.Use(server.Limit(server.RateLimit{Rate: 2, Burst: 3}))
		id := 0
		allowed := func(calls int) (n int) {
			for range calls {
				id++
				p.Call(id, "echo", M{"text": "x"})
				if m := p.Answer(id); !m.IsError() {
					n++
				} else {
					require.Contains(t, m.Text(), "too many calls: try again in ")
				}
			}
			return n
		}
		require.Equal(t, 3, allowed(10))
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, allowed(10), "two a second")
		time.Sleep(time.Second)
		require.Equal(t, 2, allowed(10))
		time.Sleep(time.Hour)
		require.Equal(t, 3, allowed(10))
		for range 100 {
			time.Sleep(500 * time.Millisecond)
			require.Equal(t, 1, allowed(1), "at the rate nobody is refused")
		}
		id++
		p.Request(id, "tools/list", nil)
		require.Nil(t, p.Answer(id).Error, "that does not count")
	})
}

// Waiting for as long as the error says is enough, and the observer learns of the refusal.
func TestLimit_TheErrorSaysHowLong(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.Use(server.Limit(server.RateLimit{Rate: 0.3}))
		for id := range 20 {
			p.Call(2*id, "echo", nil)
			require.False(t, p.Answer(2*id).IsError())
			p.Call(2*id+1, "echo", nil)
			var limited *server.RateLimitError
			require.ErrorAs(t, f.Done(2*id+1).Err, &limited)
			require.Greater(t, limited.After, 3*time.Second)
			time.Sleep(limited.After)
		}
	})
}

// Sessions and principals are counted apart; a principal is one wherever it comes from.
func TestLimit_WhoIsCountedTogether(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.Use(server.Limit(server.RateLimit{Rate: 1}))
		handshake := peerOptions{}
		scope := statelessScopes["http"]
		call := func(p *peer, id int, principal string) bool {
			if principal != "" {
				p.extra = as(principal, p.extra)
			}
			p.Call(id, "echo", nil)
			return !p.Answer(id).IsError()
		}
		a, b := newPeer(t, f.Server, handshake), newPeer(t, f.Server, handshake)
		require.True(t, call(a, 1, ""))
		require.False(t, call(a, 2, ""))
		require.True(t, call(b, 1, ""), "another session")

		c, d := newPeer(t, f.Server, scope), newPeer(t, f.Server, scope)
		require.True(t, call(c, 11, ""))
		require.False(t, call(d, 12, ""), "nothing tells these two apart")
		require.True(t, call(c, 13, "ann"))
		require.False(t, call(d, 14, "ann"))
		require.False(t, call(newPeer(t, f.Server, handshake), 1, "ann"))
		require.True(t, call(d, 15, "eve"))
	})
}

// A retry continues a call that was counted already.
func TestLimit_RetriesDoNotCount(t *testing.T) {
	eachParked(t, nil, func(t *testing.T, f *fixture, p *peer) {
		f.Use(server.Limit(server.RateLimit{Rate: 0.001}))
		p.Call(1, "ask", nil)
		first := p.Answer(1)
		p.Retry(2, first, callParams("ask", nil), first.all(t, named("ann")))
		require.Equal(t, "ann", p.Text(2))
		p.Call(3, "ask", nil)
		require.True(t, p.Answer(3).IsError())
	})
}

// Keys of the program's own: what has none is not limited, and what has no room shares.
func TestLimit_Keys(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		key := ""
		f.Use(server.Limit(server.RateLimit{
			Rate: 1, MaxKeys: 10, Methods: []string{"ping", "tools/list"},
			Key: func(context.Context, *servercontext.Request) string { return key },
		}))
		id := 0
		allowed := func(k, method string) bool {
			id++
			key = k
			p.Request(id, method, nil)
			m := p.Answer(id)
			if m.Error != nil {
				require.Equal(t, -32603, m.Error.Code)
			}
			return m.Error == nil
		}
		for range 5 {
			require.True(t, allowed("", "ping"))
		}
		for i := range 10 {
			require.True(t, allowed(fmt.Sprint(i), "ping"))
			require.False(t, allowed(fmt.Sprint(i), "tools/list"), "they count together")
		}
		require.True(t, allowed("more", "ping"))
		require.False(t, allowed("and more", "ping"), "there is no room for another")
		time.Sleep(time.Minute)
		for i := range 10 {
			require.True(t, allowed(fmt.Sprint("new", i), "ping"), "those that had a pause have made room")
		}
	})
}

// The zero value, and a rate that makes no sense, limit nothing.
func TestLimit_None(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.Use(server.Limit(server.RateLimit{}), server.Limit(server.RateLimit{Rate: -1, Burst: 1}))
		for id := range 100 {
			p.Call(id, "echo", nil)
			require.False(t, p.Answer(id).IsError())
		}
	})
}

// Log messages beyond a burst are sent at their rate; the operator learns once that some were
// dropped. Each request has a burst of its own.
func TestLogInterval(t *testing.T) {
	for interval, want := range map[time.Duration]int{0: 256 + 50, 10 * time.Millisecond: 256 + 5, -1: 600} {
		inBubbleWith(t, &server.Options{LogInterval: interval}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
			f.tool("chatty", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
				for range 500 {
					req.Log("error", "x")
				}
				time.Sleep(50*time.Millisecond + time.Microsecond)
				for range 100 {
					req.Log("error", "y")
				}
				return nil, nil
			})
			p.Request(1, "logging/setLevel", M{"level": "debug"})
			p.Answer(1)
			for round := 1; round <= 2; round++ {
				p.Call(1+round, "chatty", nil)
				p.Answer(1 + round)
				require.Len(t, p.Sent("notifications/message"), round*want, interval)
				dropped := f.logs.Find("dropped log messages for the client, there are too many")
				if interval < 0 {
					require.Empty(t, dropped)
				} else {
					require.Len(t, dropped, round)
				}
			}
		})
	}
}

// A change that one process was told of reaches the clients of the other, once, and goes no
// further; what is registered stays an affair of each.
func TestChanged_TellsOtherProcesses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var servers [2]*server.Server
		told := [2]int{}
		for i := range servers {
			servers[i] = newFixture(t, &server.Options{AnnounceDelay: -1, Changed: func(c server.Change) {
				told[i]++
				assert.NoError(t, servers[1-i].Announce(c))
			}}).Server
			require.NoError(t, servers[i].AddResource(resourceAt("test://x"), emptyText))
			servers[i].OnSubscribe(func(context.Context, *servercontext.Request, string) error { return nil })
		}
		require.Equal(t, [2]int{}, told, "registrations are not passed on")
		peers := [2]*peer{newPeer(t, servers[0], peerOptions{}), newPeer(t, servers[1], peerOptions{Version: server.Version20260728})}
		peers[0].Request(1, "resources/subscribe", M{"uri": "test://x"})
		peers[0].Result(1)
		peers[1].Request(1, "subscriptions/listen", M{"notifications": M{"toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": []string{"test://x"}}})
		peers[1].Asked("notifications/subscriptions/acknowledged", 1)
		for i, s := range servers {
			s.ResourceUpdated("test://x")
			s.ToolsChanged()
			s.PromptsChanged()
			s.ResourcesChanged()
			for _, p := range peers {
				p.settle()
				for _, method := range []string{"notifications/resources/updated", "notifications/tools/list_changed", "notifications/resources/list_changed"} {
					require.Len(t, p.Sent(method), i+1, method)
				}
			}
		}
		require.Equal(t, [2]int{4, 4}, told)
	})
}

func TestChanged_Mistakes(t *testing.T) {
	f := newFixture(t, &server.Options{Changed: func(server.Change) { panic("on purpose") }})
	require.NotPanics(t, f.ToolsChanged)
	require.Len(t, f.logs.Find("Changed panicked"), 1)
	for _, c := range []server.Change{{}, {Method: "notifications/resources/updated"}, {Method: "notifications/progress"}, {Method: "tools/list"}} {
		require.Error(t, f.Announce(c), "%+v", c)
	}
}
