package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
)

// watches records what subscription hooks were told.
type watches struct {
	mu    sync.Mutex
	calls []string
}

func (w *watches) hook(what string) server.SubscriptionHook {
	return func(_ context.Context, req *servercontext.Request, uri string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, what+" "+uri+" "+req.Session().ID())
		return nil
	}
}

func (w *watches) Calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.calls...)
}

func TestSubscriptionsAreOfTheirSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 2, 0)
		var w watches
		s.OnSubscribe(w.hook("+"))
		s.OnUnsubscribe(w.hook("-"))
		a, b := newPeer(t, s, peerOptions{ID: "a"}), newPeer(t, s, peerOptions{ID: "b"})
		assert.Equal(t, M{}, a.Get("resources/subscribe", M{"uri": "test://i00"}))
		a.Get("resources/subscribe", M{"uri": "test://i00"}) // again: no news
		b.Get("resources/subscribe", M{"uri": "test://i01"})
		s.ResourceUpdated("test://i00")
		s.ResourceUpdated("test://i01")
		s.ResourceUpdated("test://i02")
		later()
		assert.Equal(t, []string{"test://i00"}, a.updatedURIs())
		assert.Equal(t, []string{"test://i01"}, b.updatedURIs())

		assert.Equal(t, M{}, a.Get("resources/unsubscribe", M{"uri": "test://i00"}))
		a.Get("resources/unsubscribe", M{"uri": "test://i00"}) // again: no error
		a.Get("resources/unsubscribe", M{"uri": "test://unknown"})
		s.ResourceUpdated("test://i00")
		later()
		assert.Len(t, a.updatedURIs(), 1)
		assert.Equal(t, []string{"+ test://i00 a", "+ test://i01 b", "- test://i00 a"}, w.Calls())
	})
}

func TestSubscriptionToATree(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		s.OnSubscribe(func(context.Context, *servercontext.Request, string) error { return nil })
		p := newPeer(t, s, peerOptions{})
		p.Get("resources/subscribe", M{"uri": "test://tree/"})
		p.Get("resources/subscribe", M{"uri": "test://leaf"})
		for _, uri := range []string{"test://tree/a/b", "test://tree", "test://tree/", "test://leaf/a", "test://treee/a"} {
			s.ResourceUpdated(uri)
		}
		later()
		assert.Equal(t, []string{"test://tree/a/b", "test://tree/"}, p.updatedURIs())
	})
}

func TestSubscriptionToWhatCannotBeRead(t *testing.T) {
	s := paged(t, 1, 0)
	p := newPeer(t, s, peerOptions{})
	p.Get("resources/subscribe", M{"uri": "test://i00"})
	p.Get("resources/subscribe", M{"uri": "test://i00/instance"})
	p.Refused(-32002, "resources/subscribe", M{"uri": "test://unknown"})
	p.Refused(-32602, "resources/subscribe", M{})
	p.Refused(-32602, "resources/unsubscribe", M{"uri": 1})
}

func TestSubscriptionThatTheHookRefuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		var w watches
		s.OnSubscribe(func(_ context.Context, _ *servercontext.Request, uri string) error {
			if uri == "test://panic" {
				panic("no")
			}
			return errors.New("not today")
		})
		s.OnUnsubscribe(w.hook("-"))
		p := newPeer(t, s, peerOptions{})
		for _, uri := range []string{"test://i00", "test://panic", "test://panic"} {
			p.Refused(-32603, "resources/subscribe", M{"uri": uri})
			s.ResourceUpdated(uri)
		}
		later()
		assert.Empty(t, p.updatedURIs())
		p.Get("resources/unsubscribe", M{"uri": "test://i00"})
		assert.Empty(t, w.Calls(), "what was never granted is not revoked")
	})
}

func TestSubscriptionsAreBounded(t *testing.T) {
	s := plain(t, &server.Options{MaxWatched: 3})
	addTemplate(s, "test://{id}")
	p := newPeer(t, s, peerOptions{})
	for i := range 3 {
		p.Get("resources/subscribe", M{"uri": fmt.Sprintf("test://%d", i)})
	}
	p.Refused(-32603, "resources/subscribe", M{"uri": "test://3"})
	p.Get("resources/subscribe", M{"uri": "test://0"})
	p.Get("resources/unsubscribe", M{"uri": "test://0"})
	p.Get("resources/subscribe", M{"uri": "test://3"})
	newPeer(t, s, peerOptions{}).Get("resources/subscribe", M{"uri": "test://3"})
}

func TestSubscriptionsEndWithTheirSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 2, 0)
		var w watches
		s.OnUnsubscribe(func(ctx context.Context, req *servercontext.Request, uri string) error {
			_ = w.hook("-")(ctx, req, uri)
			if uri == "test://i00" {
				panic("contained")
			}
			return errors.New("logged")
		})
		p := newPeer(t, s, peerOptions{ID: "a"})
		p.Get("resources/subscribe", M{"uri": "test://i00"})
		p.Get("resources/subscribe", M{"uri": "test://i01"})
		p.ss.Close(cancellation.SessionEnd, "")
		synctest.Wait()
		assert.ElementsMatch(t, []string{"- test://i00 a", "- test://i01 a"}, w.Calls())
	})
}

func TestCancelledSubscriptionIsUndone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		var w watches
		stubborn := make(chan struct{})
		s.OnSubscribe(func(context.Context, *servercontext.Request, string) error {
			<-stubborn // and grants it although nobody wants it any more
			return nil
		})
		s.OnUnsubscribe(w.hook("-"))
		p := newPeer(t, s, peerOptions{ID: "a"})
		p.Request(1, "resources/subscribe", M{"uri": "test://i00"})
		p.settle()
		p.Request(2, "resources/subscribe", M{"uri": "test://i00"}) // waits for what the first one gets
		p.settle()
		p.Cancel(1, "stop")
		p.Silent(1)
		p.Pending(2)
		close(stubborn)
		p.Result(2) // asked the hook itself, since the first one came to nothing
		assert.Equal(t, []string{"- test://i00 a"}, w.Calls())
		s.ResourceUpdated("test://i00")
		later()
		assert.Len(t, p.updatedURIs(), 1)
	})
}

func TestSubscribeHookSeesTheCancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		var reason string
		s.OnSubscribe(func(ctx context.Context, _ *servercontext.Request, _ string) error {
			<-ctx.Done()
			reason = context.Cause(ctx).(*cancellation.Error).Reason
			return ctx.Err()
		})
		p := newPeer(t, s, peerOptions{})
		p.Request(1, "resources/subscribe", M{"uri": "test://i00"})
		p.settle()
		p.Cancel(1, "user pressed stop")
		p.Silent(1)
		assert.Equal(t, "user pressed stop", reason)
	})
}

func TestListenAsksTheHooks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 2, 0)
		var w watches
		s.OnSubscribe(func(ctx context.Context, req *servercontext.Request, uri string) error {
			if uri == "test://refused" {
				return errors.New("no")
			}
			return w.hook("+")(ctx, req, uri)
		})
		s.OnUnsubscribe(w.hook("-"))
		p := newPeer(t, s, peerOptions{Version: "2026-07-28", ID: "a"})
		uris := []any{"test://i00", "test://refused", "test://i00", "test://tree/"}
		p.Request(1, "subscriptions/listen", M{"notifications": M{"resourceSubscriptions": uris}})
		ack := p.Asked("notifications/subscriptions/acknowledged", 1)
		assert.Equal(t, M{"resourceSubscriptions": []any{"test://i00", "test://tree/"}}, ack.Param("notifications"), "what was granted, each once")
		for _, uri := range []string{"test://i00", "test://refused", "test://tree/x", "test://i01"} {
			s.ResourceUpdated(uri)
			synctest.Wait()
		}
		assert.Equal(t, []string{"test://i00", "test://tree/x"}, p.updatedURIs())
		p.Cancel(1, "")
		p.Silent(1)
		synctest.Wait()
		assert.Equal(t, []string{"+ test://i00 a", "+ test://tree/ a", "- test://i00 a", "- test://tree/ a"}, w.Calls())
	})
}

// An unsubscribe that is cancelled while the hook still decides on the subscription ends it all
// the same: the hook that grants it is told.
func TestCancelledUnsubscribeLeavesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		var w watches
		gate := make(chan struct{})
		s.OnSubscribe(func(context.Context, *servercontext.Request, string) error {
			<-gate
			return nil
		})
		s.OnUnsubscribe(w.hook("-"))
		p := newPeer(t, s, peerOptions{ID: "a"})
		p.Request(1, "resources/subscribe", M{"uri": "test://i00"})
		synctest.Wait()
		p.Request(2, "resources/unsubscribe", M{"uri": "test://i00"})
		synctest.Wait()
		p.Cancel(2, "never mind")
		p.Silent(2)
		assert.Empty(t, w.Calls())
		close(gate)
		p.Result(1)
		synctest.Wait()
		assert.Equal(t, []string{"- test://i00 a"}, w.Calls())
		s.ResourceUpdated("test://i00")
		later()
		assert.Empty(t, p.updatedURIs())
	})
}
