package server_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

func TestSlots_BoundWhatRunsAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		server server.Options
		tool   server.ToolOptions
	}{
		"server": {server.Options{MaxConcurrent: 3}, server.ToolOptions{}},
		"tool":   {server.Options{}, server.ToolOptions{MaxConcurrent: 3}},
		"both":   {server.Options{MaxConcurrent: 5}, server.ToolOptions{MaxConcurrent: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			eachEraWith(t, &tt.server, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
				var running, most atomic.Int64
				f.tool("bounded", func(context.Context, *servercontext.Request, tagged) (any, error) {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second)
					running.Add(-1)
					return "done", nil
				}, &tt.tool)
				start := time.Now()
				for id := range 30 {
					p.Call(id, "bounded", nil)
				}
				for id := range 30 {
					require.Equal(t, "done", p.Text(id))
				}
				require.EqualValues(t, 3, most.Load())
				require.Equal(t, 10*time.Second, time.Since(start))
			})
		})
	}
}

func TestSlots_WaitingForAToolBlocksNoOther(t *testing.T) {
	eachEraWith(t, &server.Options{MaxConcurrent: 2}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("single", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
			f.add(in.Tag, "started", nil)
			return "done", f.wait(ctx, in)
		}, &server.ToolOptions{MaxConcurrent: 1})
		p.Call(1, "single", tagged{Tag: "a"})
		p.Call(2, "single", tagged{Tag: "b"})
		p.settle()
		start := time.Now()
		p.Call(3, "echo", M{"text": "not behind the second"})
		require.Equal(t, "not behind the second", p.Text(3))
		require.Zero(t, time.Since(start))
		p.Cancel(1, "")
		p.Cancel(2, "")
	})
}

// A queued call that is cancelled never starts, whoever cancels it.
func TestCase17_QueuedCallIsCancelled(t *testing.T) {
	for _, tool := range []server.ToolOptions{{}, {MaxConcurrent: 1}} {
		eachEraWith(t, &server.Options{MaxConcurrent: 1}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
			calls := map[string]*server.Call{}
			p.start = func(c *server.Call) { calls[fmt.Sprint(len(calls))] = c; go c.Run() }
			f.tool("queued", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
				f.add(in.Tag, "started", nil)
				return "done", f.wait(ctx, in)
			}, &tool)
			p.Call(0, "queued", tagged{Tag: "0"})
			f.Await("0", "started")
			for id := 1; id <= 4; id++ {
				p.Call(id, "queued", tagged{Tag: fmt.Sprint(id), MS: 1})
			}
			p.settle()
			p.Cancel(1, "r")
			p.Silent(1)
			calls["2"].Cancel(cancellation.Shutdown, "operator")
			require.Contains(t, p.Answer(2).Text(), "shutdown")
			calls["3"].Cancel(cancellation.Disconnect, "")
			p.Silent(3)
			p.Pending(4)
			p.Cancel(0, "")
			require.Equal(t, "done", p.Text(4))
			for _, id := range []string{"1", "2", "3"} {
				require.Empty(t, f.Events(id), "request %s has started", id)
			}
			d := f.Done(1)
			require.True(t, d.Started.IsZero())
			require.True(t, d.Cancelled)
			require.Zero(t, f.Stats().Lingering)
			require.Empty(t, f.Ignoring())
		})
	}
}

// A cancelled handler that goes on has given its slot back.
func TestSlots_ALingeringHandlerHoldsNone(t *testing.T) {
	for _, tool := range []server.ToolOptions{{}, {MaxConcurrent: 1}} {
		eachEraWith(t, &server.Options{MaxConcurrent: 1}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
			f.tool("stubborn", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
				f.add(in.Tag, "started", nil)
				time.Sleep(time.Minute)
				return nil, nil
			}, &tool)
			for id := range 5 {
				tag := fmt.Sprint(id)
				p.Call(id, "stubborn", tagged{Tag: tag})
				f.Await(tag, "started")
				p.Cancel(id, "")
			}
			require.Equal(t, 5, f.Stats().Lingering)
			p.Call(5, "echo", M{"text": "at once"})
			require.Equal(t, "at once", p.Text(5))
			time.Sleep(2 * time.Minute)
			require.Zero(t, f.Stats().Lingering)
			for id := range 3 { // and no slot was given back twice
				p.Call(10+id, "cancel_wait", tagged{Tag: fmt.Sprint("later", id)})
			}
			p.settle()
			started := 0
			for id := range 3 {
				started += len(f.Events(fmt.Sprint("later", id)))
			}
			require.Equal(t, 1, started)
		})
	}
}

func TestSlots_CancelRacesWithAcquire(t *testing.T) {
	f := newFixture(t, &server.Options{MaxConcurrent: 1})
	f.tool("one", func(context.Context, *servercontext.Request, tagged) (any, error) { return "done", nil }, &server.ToolOptions{MaxConcurrent: 1})
	p := newPeer(t, f.Server, peerOptions{})
	for i := range 2000 {
		p.Call(i, "one", nil)
		p.Cancel(i, "")
	}
	p.Call("last", "one", nil)
	require.Equal(t, "done", p.Text("last"), "the slots are all back")
}

func TestMaxInFlight(t *testing.T) {
	eachEraWith(t, &server.Options{MaxInFlight: 3}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		for id := range 3 {
			p.Call(id, "cancel_wait", tagged{MS: 1000})
		}
		p.Call(3, "echo", nil)
		require.EqualValues(t, sdkrpc.CodeInternalError, p.Answer(3).Code())
		p.Cancel(0, "")
		p.Call(4, "echo", M{"text": "there is room"})
		require.Equal(t, "there is room", p.Text(4))
		other := newPeer(t, f.Server, peerOptions{Version: p.version})
		other.Call(1, "echo", M{"text": "the bound is a session's"})
		require.Equal(t, "the bound is a session's", other.Text(1))
		require.Equal(t, "done", p.Text(2))
	})
}

// A cancelled request makes room at once, but handlers that ignore their cancels do not pile
// up without a bound. Room comes back when they return.
func TestMaxInFlight_LingeringHandlersAreBounded(t *testing.T) {
	for _, caps := range []M{{}, allCaps} {
		eachEraWith(t, &server.Options{MaxInFlight: 3}, peerOptions{Caps: caps}, lingeringIsBounded)
	}
	inBubbleWith(t, &server.Options{MaxInFlight: 3}, statelessScopes["http"], lingeringIsBounded)
}

func lingeringIsBounded(t *testing.T, f *fixture, p *peer) {
	var last *server.Call
	p.start = func(c *server.Call) { last = c; go c.Run() }
	for id := range 3 {
		p.Call(id, "cancel_ignore", tagged{Tag: fmt.Sprint(id), MS: 60_000})
		f.Await(fmt.Sprint(id), "started")
		require.True(t, last.Cancel(cancellation.Disconnect, ""))
	}
	p.Call(3, "echo", nil)
	require.EqualValues(t, sdkrpc.CodeInternalError, p.Answer(3).Code())
	time.Sleep(2 * time.Minute)
	for id := range 100 { // none of these lingers, however quick the next one is
		p.Call(10+id, "echo", M{"text": "room"})
		require.Equal(t, "room", p.Text(10+id))
	}
	p.settle()
	require.Empty(t, f.InFlight())
}

// Handlers that were parked when they were cancelled count as well.
func TestMaxInFlight_LingeringParkedHandlersAreBounded(t *testing.T) {
	inBubbleWith(t, &server.Options{MaxInFlight: 3}, statelessScopes["stream"], func(t *testing.T, f *fixture, p *peer) {
		f.tool("stubborn", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			_, err := req.Elicit(ctx, nameForm)
			time.Sleep(time.Minute)
			return nil, err
		})
		for id := range 3 {
			p.Call(id, "stubborn", nil)
			p.Answer(id)
			p.Cancel(id, "")
		}
		p.Call(3, "echo", nil)
		require.EqualValues(t, sdkrpc.CodeInternalError, p.Answer(3).Code())
		time.Sleep(2 * time.Minute)
		p.Call(4, "echo", M{"text": "room"})
		require.Equal(t, "room", p.Text(4))
	})
}

// What was answered when its grace period was over still runs, too.
func TestMaxInFlight_OverdueHandlersAreBounded(t *testing.T) {
	eachEraWith(t, &server.Options{MaxInFlight: 2, Timeout: time.Second, Grace: time.Second}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		for id := range 2 {
			p.Call(id, "cancel_ignore", tagged{MS: 60_000})
		}
		for id := range 2 {
			require.True(t, p.Answer(id).IsError())
		}
		p.Call(3, "echo", nil)
		require.EqualValues(t, sdkrpc.CodeInternalError, p.Answer(3).Code())
		time.Sleep(2 * time.Minute)
		p.Call(4, "echo", M{"text": "room"})
		require.Equal(t, "room", p.Text(4))
	})
}

func TestMaxInFlight_DefaultAndUnbounded(t *testing.T) {
	for bound, refused := range map[int]int{0: 1, -1: 0} {
		inBubbleWith(t, &server.Options{MaxInFlight: bound}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
			var waiting []*server.Call
			line := func(id int) string {
				return `{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"tools/call","params":{"name":"echo"}}`
			}
			got := 0
			for id := range 16384 + 1 {
				p.ss.Receive([]byte(line(id)), answerFunc(func(_ []byte, code int) {
					if code == jsonrpcInternalError {
						got++
					}
				}), nil, func(c *server.Call) { waiting = append(waiting, c) })
			}
			require.Equal(t, refused, got)
			for _, c := range waiting {
				c.Run()
			}
		})
	}
}

const jsonrpcInternalError = -32603
