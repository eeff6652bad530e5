package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	toolsChanged     = "notifications/tools/list_changed"
	promptsChanged   = "notifications/prompts/list_changed"
	resourcesChanged = "notifications/resources/list_changed"
	resourceUpdated  = "notifications/resources/updated"
)

// later lets the server's debounce pass.
func later() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// updatedURIs are the resources that a peer was told of.
func (p *peer) updatedURIs() []string {
	var uris []string
	for _, m := range p.Sent(resourceUpdated) {
		uris = append(uris, m.Param("uri").(string))
	}
	return uris
}

func TestInvariant_N1_NothingIsAnnouncedBeforeInitialized(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		p := newPeer(t, s, peerOptions{Raw: true})
		addItems(s, "before")
		later()
		p.Request(0, "initialize", M{"protocolVersion": "2025-11-25", "capabilities": M{}, "clientInfo": M{"name": "c", "version": "1"}})
		p.Answer(0)
		later()
		addItems(s, "between")
		later()
		for _, m := range p.Lines() {
			assert.Empty(t, m.Method, "sent before the client was initialized")
		}
		p.Notify("notifications/initialized", nil)
		later()
		assert.Len(t, p.Sent(toolsChanged), 1, "what changed meanwhile is announced then")
		assert.Len(t, p.Sent(promptsChanged), 1)
		assert.Len(t, p.Sent(resourcesChanged), 1)
	})
}

func TestInvariant_N2_ChangesInQuickSuccessionAreAnnouncedOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		p := newPeer(t, s, peerOptions{})
		p.Get("resources/subscribe", M{"uri": "test://i00"})
		later()
		for i := range 50 {
			addItems(s, fmt.Sprint("new", i%5)) // also the same ones again
			s.ResourceUpdated("test://i00")
		}
		removeItems(s, "new1")
		later()
		for _, method := range []string{toolsChanged, promptsChanged, resourcesChanged, resourceUpdated} {
			assert.Len(t, p.Sent(method), 1, method)
		}
		addNamed(s, "new1")
		later()
		assert.Len(t, p.Sent(toolsChanged), 2, "a later change is announced anew")
		assert.Len(t, p.Sent(promptsChanged), 1)
	})
}

func TestInvariant_N3_OnlyWhatIsAdvertisedIsAnnounced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := plain(t, &server.Options{Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{Subscribe: true},
		}})
		addItems(s, "a")
		p := newPeer(t, s, peerOptions{})
		other := newPeer(t, s, peerOptions{})
		p.Get("resources/subscribe", M{"uri": "test://a"})
		addItems(s, "b")
		s.ResourceUpdated("test://a")
		s.ResourceUpdated("test://b")
		later()
		assert.Empty(t, p.Sent(toolsChanged))
		assert.Empty(t, p.Sent(resourcesChanged))
		assert.Len(t, p.Sent(promptsChanged), 1)
		assert.Equal(t, []string{"test://a"}, p.updatedURIs())
		assert.Empty(t, other.updatedURIs(), "the other session does not watch it")
		for _, m := range p.Sent(promptsChanged) {
			assert.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`, m.Raw)
			assert.Empty(t, m.On, "it belongs to no request")
		}
	})
}

func TestInvariant_N4_AClientThatDoesNotReadHoldsUpNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		var mu sync.Mutex
		var sent []string
		gate := make(chan struct{})
		ss := s.Open(t.Context(), server.SessionOptions{Send: func(msg []byte) error {
			<-gate
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, string(msg))
			return nil
		}})
		start := &peer{t: t, s: s, ss: ss, version: "2025-11-25", caps: M{}, replies: map[string]*reply{}, changed: make(chan struct{})}
		start.Initialize("2025-11-25")
		start.Get("resources/subscribe", M{"uri": "test://i00"})
		other := newPeer(t, s, peerOptions{})
		for range 100 {
			addNamed(s, "x")
			s.ResourceUpdated("test://i00")
			later()
		}
		assert.Len(t, other.Sent(toolsChanged), 100, "others are told each time")
		close(gate)
		later()
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, sent, 4, "what the client missed is kept once: %v", sent)
		ss.Close(0, "")
	})
}

func TestChangesOfFiltersAreAnnounced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		p := newPeer(t, s, peerOptions{})
		s.SetToolFilter(nil)
		s.SetPromptFilter(nil)
		s.SetResourceFilter(nil)
		later()
		assert.Len(t, p.Sent(toolsChanged), 1)
		assert.Len(t, p.Sent(promptsChanged), 1)
		assert.Len(t, p.Sent(resourcesChanged), 1)
		s.ToolsChanged()
		s.PromptsChanged()
		s.ResourcesChanged()
		later()
		assert.Len(t, p.Sent(toolsChanged), 2)
		assert.Len(t, p.Sent(promptsChanged), 2)
		assert.Len(t, p.Sent(resourcesChanged), 2)
	})
}

func TestNothingIsAnnouncedAfterTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		p := newPeer(t, s, peerOptions{})
		addNamed(s, "x")
		p.ss.Close(0, "gone")
		addNamed(s, "y")
		later()
		assert.Empty(t, p.Sent(toolsChanged))
	})
}

func TestAnnounceDelayCanBeSetOrLeftOut(t *testing.T) {
	for delay, after := range map[time.Duration]time.Duration{0: 10 * time.Millisecond, time.Minute: time.Minute, -1: 0} {
		bubble.Test(t, func(t *testing.T) {
			s := plain(t, &server.Options{AnnounceDelay: delay})
			addNamed(s, "a")
			p := newPeer(t, s, peerOptions{})
			begun := time.Now()
			addNamed(s, "b")
			m := p.Asked(toolsChanged, 1)
			assert.Equal(t, after, m.At.Sub(begun))
		})
	}
}

func TestHandlerSaysThatAResourceChanged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := paged(t, 1, 0)
		server.MustAddTool(s, &mcp.Tool{Name: "touch"}, func(_ context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			req.ResourceUpdated("test://i00")
			return "", nil
		})
		p, other := newPeer(t, s, peerOptions{}), newPeer(t, s, peerOptions{})
		other.Get("resources/subscribe", M{"uri": "test://i00"})
		p.Call(1, "touch", nil)
		p.Answer(1)
		later()
		require.Equal(t, []string{"test://i00"}, other.updatedURIs())
		assert.Empty(t, p.updatedURIs())
	})
}
