package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/stretchr/testify/require"
)

// Where messages have no order, a cancel that overtakes its request is remembered
// and the handler never starts.
func TestInvariant_E2_ACancelBeforeItsRequest(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Unordered: true}, func(t *testing.T, f *fixture, p *peer) {
		for i, id := range []any{1, "1", 0, ""} {
			tag := fmt.Sprint(i)
			p.Cancel(id, "early")
			p.Call(id, "cancel_wait", tagged{Tag: tag})
			p.Silent(id)
			require.Empty(t, f.Events(tag))
			require.Equal(t, "early", f.Done(id).Reason)
			p.Call(id, "cancel_wait", tagged{Tag: tag, MS: 10})
			require.Equal(t, "done", p.Text(id), "a cancel counts once")
		}
		p.Cancel(7, "")
		p.Call("7", "echo", M{"text": "another id"})
		require.Equal(t, "another id", p.Text("7"))
	})
}

// Where they have, it is ignored.
func TestCase12_OrderedSessionsRememberNothing(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		for i := range 2000 {
			p.Cancel(i, "too early")
			p.Call(i, "echo", M{"text": "x"})
			require.Equal(t, "x", p.Text(i))
		}
	})
}

func TestInvariant_E2_IsForgottenInTime(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Unordered: true}, func(t *testing.T, f *fixture, p *peer) {
		p.Cancel(1, "")
		p.Cancel(2, "")
		time.Sleep(5 * time.Second)
		p.Call(1, "cancel_wait", nil)
		p.Silent(1)
		time.Sleep(time.Millisecond)
		p.Call(2, "echo", M{"text": "late enough"})
		require.Equal(t, "late enough", p.Text(2))
	})
}

// An id that finished a moment ago was not cancelled early but late.
func TestInvariant_E2_NotForRecentlyFinishedIDs(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Unordered: true}, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "echo", nil)
		p.Text(1)
		p.Cancel(1, "late")
		p.Call(2, "cancel_wait", nil)
		p.Cancel(2, "in time")
		p.Silent(2)
		p.Cancel(2, "again")
		for _, id := range []int{1, 2} {
			p.Call(id, "echo", M{"text": "reused"})
			require.Equal(t, "reused", p.Text(id))
		}
		// Only the newest ids are remembered as finished.
		for id := 10; id < 10+256; id++ {
			p.Call(id, "echo", nil)
			p.Text(id)
		}
		p.Cancel(1, "taken for an early one")
		p.Call(1, "cancel_wait", nil)
		p.Silent(1)
		p.Cancel(265, "late")
		p.Call(265, "echo", M{"text": "x"})
		p.Text(265)
	})
}

// Their number is bounded, and room comes back with time.
func TestInvariant_E3_IsBounded(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Unordered: true}, func(t *testing.T, f *fixture, p *peer) {
		for id := range 100 {
			p.Cancel(id, "")
		}
		silent := 0
		for id := range 100 {
			p.Call(id, "cancel_wait", tagged{MS: 1})
			p.settle()
			if p.replies[idText(t, id)].silenced() {
				silent++
			}
		}
		require.Equal(t, 64, silent)
		for id := 200; id < 264; id++ {
			p.Cancel(id, "")
		}
		time.Sleep(6 * time.Second)
		p.Cancel(300, "there is room again")
		p.Call(300, "cancel_wait", nil)
		p.Silent(300)
	})
}

// Long ids and reasons are a peer's means to fill the memory.
func TestInvariant_E3_KeepsLittleOfLongTexts(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Unordered: true}, func(t *testing.T, f *fixture, p *peer) {
		long := strings.Repeat("x", 32<<10)
		before := heap()
		for i := range 64 {
			p.Cancel(i, long)
			p.Cancel(fmt.Sprint(i)+long, "")
		}
		require.Less(t, heap()-before, int64(1<<20), "of 4 MiB")
		p.Call(3, "cancel_wait", nil)
		d := f.Done(3)
		require.Equal(t, cancellation.Peer, d.Origin)
		require.Len(t, d.Reason, cancellation.MaxReason)
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A cancel and its request that come in at the same instant, by two goroutines as two POSTs do: in
// whatever order they are taken in, the request does not run on.
func TestInvariant_E1_ACancelRacesWithItsRequest(t *testing.T) {
	f := newFixture(t, nil)
	p := newPeer(t, f.Server, peerOptions{Unordered: true})
	var settled sync.WaitGroup
	for id := range 10_000 {
		request, cancel := p.Line(id, "tools/call", M{"name": "cancel_value", "arguments": M{}}), cancelText(id)
		settled.Add(1)
		var both sync.WaitGroup
		both.Go(func() { p.ss.Receive([]byte(request), silenceFunc(settled.Done), nil, nil) })
		both.Go(func() { p.ss.Receive([]byte(cancel), silenceFunc(func() {}), nil, nil) })
		both.Wait()
	}
	done := make(chan struct{})
	go func() { settled.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience()):
		t.Fatalf("%d requests run on although they were cancelled", f.Stats().InFlight)
	}
}

func cancelText(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
}

// silenceFunc is a Reply that is called when its request is silenced.
type silenceFunc func()

func (silenceFunc) Send([]byte) error  { return nil }
func (silenceFunc) Answer([]byte, int) {}
func (f silenceFunc) Silence()         { f() }
