package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// A thousand calls, all cancelled: goroutines and memory return to where they were.
func TestCase42_AThousandCalls(t *testing.T) {
	for _, version := range []string{server.Version20251125, server.Version20260728} {
		f := newFixture(t, nil)
		f.tool("wait", func(ctx context.Context, _ *servercontext.Request, _ tagged) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ss := f.Open(t.Context(), server.SessionOptions{Version: version})
		p := &peer{t: t, version: version, caps: M{}}
		line := p.Line(nil, "tools/call", callParams("wait", nil))
		round := func() {
			for id := range 1000 {
				ss.Receive([]byte(strings.Replace(line, `{`, fmt.Sprintf(`{"id":%d,`, id), 1)), answerFunc(func(msg []byte, _ int) {
					t.Errorf("answered: %s", msg)
				}), nil, nil)
			}
			for id := range 1000 {
				ss.Receive([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)), nil, nil, nil)
			}
			require.NoError(t, ss.Wait(t.Context()))
			f.mu.Lock()
			f.done = nil
			f.mu.Unlock()
			f.logs.mu.Lock()
			f.logs.all = nil
			f.logs.mu.Unlock()
		}
		goroutines := runtime.NumGoroutine()
		round()
		memory := heap()
		for range 5 {
			round()
		}
		require.Less(t, heap()-memory, int64(1<<20))
		// A handler's goroutine ends after it was counted as returned.
		for end := time.Now().Add(patience()); runtime.NumGoroutine() > goroutines+20; runtime.Gosched() {
			require.True(t, time.Now().Before(end), "%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
		require.Zero(t, f.Stats().InFlight)
		ss.Close(cancellation.Disconnect, "")
	}
}

// Somebody else's cancellation is an error like any other.
func TestCase44_ForeignCancellation(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "cancel_foreign", tagged{MS: 1})
		m := p.Answer(1)
		require.Nil(t, m.Error)
		require.True(t, m.IsError())
		require.Contains(t, m.Text(), "not mine")
		require.False(t, f.Done(1).Cancelled)
	})
}

func TestCase46_PanicsAreContained(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("hook", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			req.Token().OnCancel(func(*cancellation.Error) { panic("in a hook") })
			return nil, f.wait(ctx, tagged{Tag: "hook"})
		})
		p.Call(1, "cancel_panic", tagged{MS: 1})
		m := p.Answer(1)
		require.EqualValues(t, sdkrpc.CodeInternalError, m.Code())
		require.NotContains(t, m.Raw, "secret")
		p.Call(2, "hook", nil)
		p.settle()
		p.Cancel(2, "r")
		f.Await("hook", "observed")
		p.Silent(2)
		require.Len(t, f.logs.Find("hook panicked"), 1)
		p.Call(3, "echo", M{"text": "alive"})
		p.Text(3)
	})
}

// A lock and a subprocess that a handler holds are free after the cancel.
func TestCase47_LocksAndProcesses(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	for _, version := range []string{server.Version20251125, server.Version20260728} {
		f := newFixture(t, nil)
		p := newPeer(t, f.Server, peerOptions{Version: version})
		var lock sync.Mutex
		f.tool("hold", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			lock.Lock()
			defer lock.Unlock()
			c := exec.CommandContext(ctx, sleep, "600")
			if err := c.Start(); err != nil {
				return nil, err
			}
			f.add("hold", "started", nil)
			err := c.Wait()
			f.add("hold", "ended", err)
			return nil, err
		})
		start := time.Now()
		p.Call(1, "hold", nil)
		f.Await("hold", "started")
		p.Cancel(1, "r")
		f.Await("hold", "ended")
		f.Done(1)
		require.True(t, lock.TryLock(), "the lock is free")
		require.Less(t, time.Since(start), 5*time.Minute)
	}
}

// Keys match case-sensitively, and duplicates do not split validators.
func TestCase50_KeysAreExact(t *testing.T) {
	inBubbleWith(t, nil, peerOptions{Version: server.Version20260728}, func(t *testing.T, f *fixture, p *peer) {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		for id, tt := range []struct {
			params string
			code   int64
		}{
			{`{"Name":"cancel_wait","name":"echo",` + meta + `}`, 0},
			{`{"name":"echo","Name":"cancel_wait",` + meta + `}`, 0},
			{`{"NAME":"echo",` + meta + `}`, sdkrpc.CodeInvalidParams},
			{`{"name":"cancel_wait","name":"echo",` + meta + `}`, sdkrpc.CodeInvalidParams},
			{`{"name":"cancel_wait","n\u0061me":"echo",` + meta + `}`, sdkrpc.CodeInvalidParams},
			{`{"name":"echo","_Meta":{}}`, sdkrpc.CodeInvalidRequest},
		} {
			p.Raw(fmt.Sprint(id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, tt.params))
			require.EqualValues(t, tt.code, p.Answer(id).Code(), tt.params)
		}
		// Two versions, two sets of capabilities: what was validated is what counts.
		for id, twice := range map[int]string{
			100: `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/clientCapabilities":{}`,
			101: `"io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`,
			102: `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":7,"io.modelcontextprotocol/clientCapabilities":{"roots":{}}`,
			103: `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientCapabilities":7`,
			104: `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}`,
		} {
			p.Raw(fmt.Sprint(id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"_meta":{%s}}}`, id, twice))
			require.NotZero(t, p.Answer(id).Code(), "%s: %s", twice, p.Answer(id).Raw)
		}
	})
}

// A URI with control characters that is not found: a well-formed error, and no more.
func TestCase52_OddURIs(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.Server.MustAddResource(resourceAt("test://empty-text"), emptyText)
		for id, uri := range []string{"test://a\x00b\nc\x1b", "\u2028", "", strings.Repeat("x", 100_000), "%zz", "test://%"} {
			p.Request(id, "resources/read", M{"uri": uri})
			m := p.Answer(id)
			require.NotZero(t, m.Code(), "%q", uri)
			require.True(t, json.Valid([]byte(m.Raw)))
			require.Less(t, len(m.Raw), 2000)
		}
		p.Call("next", "echo", nil)
		p.Text("next")
	})
}

// An empty text resource carries its text.
func TestCase53_EmptyText(t *testing.T) {
	for _, version := range server.Versions() {
		inBubbleWith(t, nil, peerOptions{Version: version}, func(t *testing.T, f *fixture, p *peer) {
			f.Server.MustAddResource(resourceAt("test://empty-text"), emptyText)
			p.Request(1, "resources/read", M{"uri": "test://empty-text"})
			require.Contains(t, p.Answer(1).Raw, `"text":""`)
		})
	}
}

// With 300 calls waiting, a ping and a cancel take effect at once.
func TestCase57_ManyWaitingCalls(t *testing.T) {
	eachEraWith(t, &server.Options{MaxConcurrent: 200}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		for id := range 300 {
			p.Call(id, "cancel_wait", tagged{Tag: fmt.Sprint(id)})
			if id == 0 {
				f.Await("0", "started")
			}
		}
		start := time.Now()
		if p.handshake() {
			p.Request("ping", "ping", nil)
		} else {
			p.Request("ping", "server/discover", nil)
		}
		p.Cancel(0, "r")
		require.Equal(t, "r", f.Await("0", "observed").Reason)
		p.Answer("ping")
		p.Silent(0)
		require.Zero(t, time.Since(start))
		for id := 1; id < 300; id++ {
			p.Cancel(id, "")
		}
	})
}

// A request and its cancel in one write, 200 times: nothing runs on.
func TestCase58_RequestAndCancelTogether(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		for id := range 200 {
			p.Call(id, "cancel_wait", tagged{Tag: fmt.Sprint(id)})
			p.Cancel(id, "r")
		}
		require.NoError(t, p.ss.Wait(t.Context()))
		for id := range 200 {
			p.Silent(id)
		}
		require.Equal(t, 0, f.Stats().InFlight)
		require.Empty(t, f.InFlight())
	})
}
