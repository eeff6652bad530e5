package server_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

type numbered struct {
	N int `json:"n"`
}

// noted records numbers in the order in which handlers see them.
type noted struct {
	mu   sync.Mutex
	seen []int
}

func (n *noted) add(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, i)
}

func (n *noted) Seen() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]int(nil), n.seen...)
}

const noteMethod = "notifications/acme/note"

func TestInvariant_B1_NotificationsAreHandledInOrder(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		bubble.Test(t, func(t *testing.T) {
			s := plain(t, nil)
			var n noted
			running := 0
			server.MustAddMethod(s, noteMethod, func(_ context.Context, _ *servercontext.Request, in numbered) (any, error) {
				running++ // racy, and caught by the race detector, if two ran at once
				defer func() { running-- }()
				n.add(in.N*10 + running)
				switch in.N % 3 {
				case 0:
					panic("no")
				case 1:
					runtime.Goexit()
				}
				return nil, errors.New("no")
			})
			p := newPeer(t, s, peerOptions{Version: version})
			var want []int
			for i := range 500 {
				p.Notify(noteMethod, M{"n": i})
				want = append(want, i*10+1)
			}
			synctest.Wait()
			assert.Equal(t, want, n.Seen())
		})
	}
}

func TestInvariant_B2_AnIdleSessionHasNoGoroutineForNotifications(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := plain(t, nil)
		var n noted
		server.MustAddMethod(s, noteMethod, func(_ context.Context, _ *servercontext.Request, in numbered) (any, error) {
			n.add(in.N)
			return nil, nil
		})
		p := newPeer(t, s, peerOptions{})
		p.Notify(noteMethod, M{"n": 1})
		synctest.Wait()
		assert.False(t, p.ss.Busy())
		p.Notify(noteMethod, M{"n": 2})
		synctest.Wait()
		assert.Equal(t, []int{1, 2}, n.Seen(), "the next one starts it anew")
		// The session stays open: a goroutine of its would fail the bubble.
	})
}

func TestInvariant_B3_WaitingNotificationsAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := &logs{}
		s := plain(t, &server.Options{Logger: l.Logger()})
		gate := make(chan struct{})
		var n noted
		server.MustAddMethod(s, noteMethod, func(_ context.Context, _ *servercontext.Request, in numbered) (any, error) {
			<-gate
			n.add(in.N)
			return nil, nil
		})
		p, other := newPeer(t, s, peerOptions{}), newPeer(t, s, peerOptions{})
		for i := range 2000 {
			p.Notify(noteMethod, M{"n": i})
		}
		other.Notify(noteMethod, M{"n": -1})
		p.Get("ping", nil)
		close(gate)
		synctest.Wait()
		seen := n.Seen()
		assert.Len(t, seen, 1+1024+1)
		assert.Contains(t, seen, -1, "another session has room of its own")
		assert.Len(t, l.Find("dropped a notification"), 2000-1-1024)
	})
}

func TestInvariant_B4_TheEndOfASessionEndsItsNotifications(t *testing.T) {
	for name, end := range map[string]func(p *peer){
		"closed": func(p *peer) { p.ss.Close(cancellation.SessionEnd, "over") },
		"drained": func(p *peer) {
			_ = p.ss.Drain(context.Background(), 0, "over")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := plain(t, nil)
				var n noted
				var reason string
				server.MustAddMethod(s, noteMethod, func(ctx context.Context, _ *servercontext.Request, in numbered) (any, error) {
					n.add(in.N)
					<-ctx.Done()
					reason = fmt.Sprint(context.Cause(ctx).(*cancellation.Error).Reason)
					return nil, ctx.Err()
				})
				p := newPeer(t, s, peerOptions{})
				p.Notify(noteMethod, M{"n": 1})
				p.Notify(noteMethod, M{"n": 2})
				synctest.Wait()
				assert.True(t, p.ss.Busy())
				end(p)
				assert.NoError(t, p.ss.Wait(context.Background()))
				assert.Equal(t, []int{1}, n.Seen())
				assert.Equal(t, "over", reason)
			})
		})
	}
}

func TestRootsHookAsksForTheRoots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := plain(t, nil)
		var roots []*mcp.Root
		var failed []error
		s.OnRootsChanged(func(ctx context.Context, req *servercontext.Request) {
			r, err := req.ListRoots(ctx)
			if err != nil {
				failed = append(failed, err)
				return
			}
			roots = r.Roots
		})
		p := newPeer(t, s, peerOptions{Caps: allCaps})
		p.Notify("notifications/roots/list_changed", nil)
		asked := p.Asked("roots/list", 1)
		assert.Empty(t, asked.On, "on the session's own stream")
		p.Respond(asked, M{"roots": []any{M{"uri": "file:///a"}}})
		synctest.Wait()
		assert.Equal(t, "file:///a", roots[0].URI)

		mute := newPeer(t, s, peerOptions{Caps: allCaps, NoSend: true})
		mute.Notify("notifications/roots/list_changed", nil)
		synctest.Wait()
		assert.Len(t, failed, 1, "without a stream it fails at once")
	})
}

func TestRootsHookIsCalled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := plain(t, nil)
		var n noted
		s.OnRootsChanged(func(_ context.Context, req *servercontext.Request) {
			assert.Equal(t, "a", req.Session().ID())
			n.add(1)
		})
		p := newPeer(t, s, peerOptions{ID: "a"})
		p.Notify("notifications/roots/list_changed", nil)
		synctest.Wait()
		s.OnRootsChanged(nil)
		p.Notify("notifications/roots/list_changed", nil)
		synctest.Wait()
		assert.Equal(t, []int{1}, n.Seen())
	})
}

// Notifications of the stateless era over HTTP run side by side, within the same bound.
func TestInvariant_B3_NotificationsSideBySideAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := &logs{}
		s := plain(t, &server.Options{Logger: l.Logger()})
		gate := make(chan struct{})
		var n noted
		server.MustAddMethod(s, noteMethod, func(_ context.Context, _ *servercontext.Request, in numbered) (any, error) {
			<-gate
			n.add(in.N)
			return nil, nil
		})
		p := newPeer(t, s, statelessScopes["http"])
		for i := range 2000 {
			p.Notify(noteMethod, M{"n": i})
		}
		assert.True(t, p.ss.Busy())
		close(gate)
		synctest.Wait()
		assert.Len(t, n.Seen(), 1024)
		assert.Len(t, l.Find("dropped a notification"), 2000-1024)
		assert.False(t, p.ss.Busy())
		p.Notify(noteMethod, M{"n": 1})
		synctest.Wait()
		assert.Len(t, n.Seen(), 1025, "there is room again")
	})
}

// A drain cancels them, waits for them, and takes no more.
func TestInvariant_B4_ADrainEndsNotificationsSideBySide(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := plain(t, &server.Options{DrainGrace: time.Second})
		var n noted
		server.MustAddMethod(s, noteMethod, func(ctx context.Context, _ *servercontext.Request, in numbered) (any, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			n.add(in.N)
			return nil, nil
		})
		p := newPeer(t, s, statelessScopes["http"])
		p.Notify(noteMethod, M{"n": 1})
		p.Notify(noteMethod, M{"n": 2})
		begun := time.Now()
		assert.NoError(t, s.Drain(t.Context()))
		assert.Equal(t, 2*time.Second, time.Since(begun))
		assert.ElementsMatch(t, []int{1, 2}, n.Seen())
		p.Notify(noteMethod, M{"n": 3})
		synctest.Wait()
		assert.Len(t, n.Seen(), 2)
	})
}
