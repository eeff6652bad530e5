package server_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

// A handler that waits on its token hears of a cancel within 2 ms of its line being
// read, with a thousand other calls in flight. The clock is the real one; on a
// machine that is busy with other things the slowest one in a hundred may take longer.
func TestCancelLatency(t *testing.T) {
	const rounds = 500
	for _, version := range []string{server.Version20251125, server.Version20260728} {
		t.Run(version, func(t *testing.T) {
			f := newFixture(t, nil)
			heard := make(chan time.Time, 1)
			f.tool("latency", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
				f.add("latency", "started", nil)
				<-req.Token().Done()
				heard <- time.Now()
				return nil, cancellation.Checkpoint(ctx)
			})
			p := newPeer(t, f.Server, peerOptions{Version: version})
			for id := range 1000 {
				p.Call(id, "cancel_wait", nil)
			}
			p.await("all waiting", func() bool { return f.Stats().InFlight == 1000 })
			all := make([]time.Duration, rounds)
			for i := range all {
				id := fmt.Sprint("latency", i)
				started := len(f.Events("latency"))
				p.Call(id, "latency", nil)
				f.awaitCount("latency", started+1)
				line := encode(t, M{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": M{"requestId": id}})
				read := time.Now()
				p.ss.Receive([]byte(line), nil, nil, nil)
				all[i] = (<-heard).Sub(read)
			}
			slices.Sort(all)
			median, p99 := all[rounds/2], all[rounds*99/100]
			t.Logf("median %v, p99 %v, slowest %v", median, p99, all[rounds-1])
			require.Less(t, median, 2*time.Millisecond)
			require.Less(t, p99, 50*time.Millisecond)
			p.ss.CancelAll(cancellation.Peer, "")
		})
	}
}

// awaitCount waits until that many events have happened under a tag.
func (f *fixture) awaitCount(tag string, n int) {
	f.t.Helper()
	late := time.NewTimer(patience())
	defer late.Stop()
	for {
		f.mu.Lock()
		count := 0
		for _, e := range f.events {
			if e.Tag == tag {
				count++
			}
		}
		changed := f.changed
		f.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			f.t.Fatalf("%s: %d events, not %d", tag, count, n)
		}
	}
}
