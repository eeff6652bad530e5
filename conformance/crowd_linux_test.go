package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	crowd         = 1000 // streams that are open at the same time
	crowdSessions = 10   // that those of the handshake era belong to
	crowdSlack    = 4    // goroutines and files that may come and go meanwhile
	crowdWithin   = 2 * surely

	// crowdMemory, in KiB, is what an idle server is content with, and a crowd is not; on top
	// of it comes what the program itself occupies.
	crowdMemory  = 20 << 10
	crowdProgram = 14 << 10
)

// footprint is what a server has in use.
type footprint struct {
	stats
	Files    int // open file descriptors
	Resident int // memory, in KiB
}

func (f footprint) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %d KiB, %d in flight, %d lingering, %d sessions",
		f.Goroutines, f.Files, f.Resident, f.InFlight, f.Lingering, f.Sessions)
}

// crowdedServer is a server, and a client that looks at it.
type crowdedServer struct {
	own *peer
	pid int
}

func (s *crowdedServer) footprint(t require.TestingT, ctx context.Context) footprint {
	f := footprint{stats: s.own.stats(t, ctx)}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.pid))
	require.NoError(t, err)
	f.Files = len(files)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, err := fmt.Sscan(rest, &f.Resident)
			require.NoError(t, err)
		}
	}
	return f
}

// A thousand open streams, each cancelled or dropped, leave nothing behind: goroutines, file
// descriptors and memory are where they were.
func TestThousandStreams(t *testing.T) {
	// Without a limit the runtime keeps for minutes what it might need again. With one it
	// gives back what is not in use.
	url, pid := startEverything(t, plainProgram.path(t), fmt.Sprintf("GOMEMLIMIT=%dKiB", crowdMemory))
	s := &crowdedServer{newPeer(t, url), pid}
	kinds := []struct {
		name string
		run  func(*testing.T, *crowdedServer)
	}{
		{"dropped calls", dropCalls},
		{"dropped subscriptions", dropSubscriptions},
		{"cancelled calls in sessions", cancelInSessions},
	}
	at := s.footprint(t, t.Context())
	t.Logf("at first: %v", at)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			k.run(t, s)
			t.Logf("afterwards: %v", s.settles(t, at))
		})
	}
}

// settles waits until the server is back to where it was.
func (s *crowdedServer) settles(t *testing.T, at footprint) (now footprint) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		now = s.footprint(c, t.Context())
		assert.Zero(c, now.InFlight, "requests")
		assert.Zero(c, now.Lingering, "cancelled handlers")
		assert.Equal(c, at.Sessions, now.Sessions, "sessions")
		assert.LessOrEqual(c, now.Goroutines, at.Goroutines+crowdSlack, "goroutines")
		assert.LessOrEqual(c, now.Files, at.Files+crowdSlack, "file descriptors")
		assert.LessOrEqual(c, now.Resident, crowdMemory+crowdProgram, "KiB of memory")
	}, crowdWithin, 50*time.Millisecond)
	return now
}

// gather opens so many streams and returns when the server has answered each with its headers.
func gather(t *testing.T, ctx context.Context, open func(ctx context.Context, i int) (*http.Response, error)) []*http.Response {
	t.Helper()
	responses, failures := make([]*http.Response, crowd), make([]error, crowd)
	var group sync.WaitGroup
	for i := range crowd {
		group.Go(func() { responses[i], failures[i] = open(ctx, i) })
	}
	group.Wait()
	for i, err := range failures {
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, responses[i].StatusCode)
	}
	return responses
}

// crowdedPeer is a peer for one crowd, whose connections end with it.
func crowdedPeer(s *crowdedServer) (p *peer, leave func()) {
	transport := &http.Transport{MaxIdleConnsPerHost: crowdSessions}
	return &peer{url: s.own.url, http: &http.Client{Transport: transport}, lastID: s.own.lastID}, transport.CloseIdleConnections
}

func dropCalls(t *testing.T, s *crowdedServer) {
	p, leave := crowdedPeer(s)
	defer leave()
	tag := fmt.Sprintf("crowd-%d", p.next())
	ctx, drop := context.WithCancel(t.Context())
	defer drop()
	responses := gather(t, ctx, func(ctx context.Context, _ int) (*http.Response, error) {
		return p.post(ctx, p.tool("cancel_wait", M{"tag": tag, "ms": 600_000}))
	})
	require.Equal(t, crowd, s.own.stats(t, t.Context()).InFlight)
	t.Logf("crowded: %v", s.footprint(t, t.Context()))
	drop()
	closeAll(responses)
	s.observed(t, tag, "disconnect")
}

func dropSubscriptions(t *testing.T, s *crowdedServer) {
	p, leave := crowdedPeer(s)
	defer leave()
	ctx, drop := context.WithCancel(t.Context())
	defer drop()
	responses := gather(t, ctx, func(ctx context.Context, i int) (*http.Response, error) {
		return p.post(ctx, p.request("subscriptions/listen", M{"notifications": M{
			"toolsListChanged": true, "resourceSubscriptions": []string{"test://watched-resource"},
		}}))
	})
	t.Logf("crowded: %v", s.footprint(t, t.Context()))
	drop()
	closeAll(responses)
}

func cancelInSessions(t *testing.T, s *crowdedServer) {
	p, leave := crowdedPeer(s)
	defer leave()
	tag := fmt.Sprintf("crowd-%d", p.next())
	var sessions []*peer
	for range crowdSessions {
		in := p.open(t)
		defer in.end(t)
		sessions = append(sessions, in)
	}
	calls := make([]M, crowd)
	responses := gather(t, t.Context(), func(ctx context.Context, i int) (*http.Response, error) {
		in := sessions[i%crowdSessions]
		calls[i] = in.tool("cancel_wait", M{"tag": tag, "ms": 600_000})
		return in.post(ctx, calls[i])
	})
	require.Equal(t, crowd, s.own.stats(t, t.Context()).InFlight)
	t.Logf("crowded: %v", s.footprint(t, t.Context()))
	for i, call := range calls {
		sessions[i%crowdSessions].notify(t, "notifications/cancelled", M{"requestId": call["id"], "reason": "enough"})
	}
	for _, response := range responses {
		for line := range lines(response.Body) { // it ends by itself
			assert.Fail(t, "a message after the cancel", line)
		}
		_ = response.Body.Close()
	}
	s.observed(t, tag, "peer")
}

func closeAll(responses []*http.Response) {
	for _, response := range responses {
		_ = response.Body.Close()
	}
}

// observed waits until each call of a crowd has seen its cancel, and of the right origin.
func (s *crowdedServer) observed(t *testing.T, tag, origin string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var list struct{ Events []fixtureEvent }
		require.NoError(c, s.own.structured(t.Context(), "cancel_events", M{"tag": tag}, &list))
		n := 0
		for _, e := range list.Events {
			if e.Event == "observed" && e.Origin == origin {
				n++
			}
		}
		assert.Equal(c, crowd, n)
	}, crowdWithin, 50*time.Millisecond)
}
