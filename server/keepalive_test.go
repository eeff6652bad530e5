package server_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ended(p *peer) bool {
	select {
	case <-p.ss.Done():
		return true
	default:
		return false
	}
}

func TestInvariant_K1_ASessionThatAnswersPingsLives(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "late": 2500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newPeer(t, plain(t, &server.Options{KeepAlive: time.Second}), peerOptions{})
				for n := 1; n <= 20; n++ {
					ping := p.Asked("ping", n)
					time.AfterFunc(delay, func() { p.Respond(ping, M{}) })
				}
				time.Sleep(delay + time.Millisecond)
				synctest.Wait()
				assert.False(t, ended(p))
			})
		})
	}
	t.Run("with an error", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			p := newPeer(t, plain(t, &server.Options{KeepAlive: time.Second, KeepAliveMisses: 1}), peerOptions{})
			for n := 1; n <= 5; n++ {
				p.RespondError(p.Asked("ping", n), -32601, "what is a ping?")
			}
			assert.False(t, ended(p))
		})
	})
}

func TestInvariant_K2_UnansweredPingsEndTheSession(t *testing.T) {
	for misses, pings := range map[int]int{0: 3, 1: 1, 5: 5} {
		t.Run(fmt.Sprint(misses), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(t, &server.Options{KeepAlive: time.Second, KeepAliveMisses: misses})
				p := newPeer(t, f.Server, peerOptions{})
				begun := time.Now()
				p.Call(1, "cancel_wait", M{"tag": "a", "ms": 600_000})
				p.Respond(p.Asked("ping", 1), M{}) // a good start helps nobody later
				<-p.ss.Done()
				assert.Equal(t, time.Duration(pings+2)*time.Second, time.Since(begun))
				assert.Len(t, p.Sent("ping"), pings+1)
				assert.Equal(t, cancellation.Disconnect, f.Done(1).Origin)
				p.Silent(1)
				time.Sleep(time.Minute)
				assert.Len(t, p.Sent("ping"), pings+1, "and that was the last one")
			})
		})
	}
}

func TestInvariant_K3_NoGoroutineWaitsBetweenPings(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPeer(t, plain(t, &server.Options{KeepAlive: time.Hour}), peerOptions{})
		p.Respond(p.Asked("ping", 1), M{})
		synctest.Wait()
		p.ss.Close(cancellation.Disconnect, "")
		// goleak, in TestMain, looks for what is left; a bubble that ends with a
		// goroutine in it fails as well.
	})
}

func TestKeepAliveNeedsTheHandshakeAndAStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := plain(t, &server.Options{KeepAlive: time.Second})
		raw := newPeer(t, s, peerOptions{Raw: true})
		stateless := newPeer(t, s, peerOptions{Version: "2026-07-28"})
		mute := newPeer(t, s, peerOptions{NoSend: true})
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, p := range []*peer{raw, stateless, mute} {
			assert.Empty(t, p.Sent("ping"))
			assert.False(t, ended(p))
		}
	})
}

func TestNoKeepAliveByDefault(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPeer(t, plain(t, nil), peerOptions{})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.Empty(t, p.Sent("ping"))
	})
}
