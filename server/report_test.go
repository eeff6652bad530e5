package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

// Who was asked to stop, who noticed and when, and when they stopped.
func TestObserver_TheThreeInstants(t *testing.T) {
	eachEraWith(t, nil, peerOptions{ID: "s1"}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("slow", func(ctx context.Context, _ *servercontext.Request, _ tagged) (any, error) {
			for cancellation.Checkpoint(ctx) == nil {
				time.Sleep(30 * time.Millisecond)
			}
			time.Sleep(200 * time.Millisecond) // cleans up
			return nil, cancellation.Checkpoint(ctx)
		})
		start := time.Now()
		p.Call(1, "slow", nil)
		time.Sleep(100 * time.Millisecond)
		p.Cancel(1, "enough")
		d := f.Done(1)
		require.Equal(t, server.RequestDone{
			Session: "s1", ID: "1", Method: "tools/call", Name: "slow",
			Cancelled: true, Origin: cancellation.Peer, Reason: "enough",
			Started: start, Requested: start.Add(100 * time.Millisecond),
			Observed: start.Add(120 * time.Millisecond), Returned: start.Add(320 * time.Millisecond),
			Err: d.Err,
		}, d)
		require.ErrorIs(t, d.Err, cancellation.ErrCancelled)
	})
}

// A handler that noticed only through Done counts as of its return at the latest.
func TestObserver_DoneLeavesNoTrace(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("done", func(ctx context.Context, _ *servercontext.Request, _ tagged) (any, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil, nil
		})
		p.Call(1, "done", nil)
		p.settle()
		p.Cancel(1, "")
		d := f.Done(1)
		require.Equal(t, d.Returned, d.Observed)
		require.Equal(t, time.Second, d.Returned.Sub(d.Requested))
	})
}

func TestObserver_RequestsThatEndByThemselves(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		p.Call("ok", "echo", nil)
		p.Call("bad", "cancel_error", tagged{MS: 1})
		p.Call("none", "no such tool", nil)
		ok, bad, none := f.Done("ok"), f.Done("bad"), f.Done("none")
		require.NoError(t, ok.Err)
		require.ErrorIs(t, bad.Err, errOwn)
		require.Error(t, none.Err)
		for _, d := range []server.RequestDone{ok, bad, none} {
			require.True(t, d.Answered)
			require.False(t, d.Cancelled)
			require.Zero(t, d.Requested)
			require.Zero(t, d.Observed)
			require.False(t, d.Returned.Before(d.Started))
		}
		require.Equal(t, "no such tool", none.Name)
	})
}

// A handler that ignores its token is reported after the grace period, with the
// stack that shows where it sits; its stream and slot are free long before.
func TestCase41_AHandlerThatIgnoresItsToken(t *testing.T) {
	for _, caps := range []M{{}, allCaps} { // with and without a goroutine of its own in the stateless era
		eachEraWith(t, &server.Options{Grace: 3 * time.Second}, peerOptions{ID: "s1", Caps: caps}, func(t *testing.T, f *fixture, p *peer) {
			f.tool("stubborn", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
				sitsHere(time.Duration(in.MS) * time.Millisecond)
				return nil, nil
			})
			for id := range 3 { // others, whose stacks are not meant
				p.Call(100+id, "cancel_wait", tagged{})
			}
			p.Call(1, "stubborn", tagged{MS: 60_000})
			p.Call(2, "stubborn", tagged{MS: 2_000}) // returns in time
			p.settle()
			requested := time.Now()
			p.Cancel(1, "stop")
			p.Cancel(2, "stop")
			p.Silent(1)
			time.Sleep(3*time.Second - 1)
			p.settle()
			require.Empty(t, f.Ignoring())
			time.Sleep(time.Nanosecond)
			p.settle()
			ignoring := f.Ignoring()
			require.Len(t, ignoring, 1)
			u := ignoring[0]
			require.Contains(t, u.Stack, "server_test.sitsHere")
			require.NotContains(t, u.Stack, "fixture).wait")
			u.Stack = ""
			require.Equal(t, server.Unresponsive{
				Session: "s1", ID: "1", Method: "tools/call", Name: "stubborn",
				Origin: cancellation.Peer, Reason: "stop", Requested: requested,
			}, u)
			warned := f.logs.Find("handler ignores its cancellation")
			require.Len(t, warned, 1)
			require.Equal(t, slog.LevelWarn, warned[0].Level)
			require.Contains(t, warned[0].Attrs["stack"], "server_test.sitsHere")
			require.Equal(t, 3*time.Second, warned[0].Attrs["since"])
			require.EqualValues(t, 1, f.Stats().Unresponsive)
			require.Equal(t, 60*time.Second, f.Done(1).Returned.Sub(requested))
			require.Zero(t, f.Stats().Lingering)
			for id := range 3 {
				p.Cancel(100+id, "")
			}
		})
	}
}

//go:noinline
func sitsHere(d time.Duration) { time.Sleep(d) }

// Many handlers that ignore their token are all reported, without a dump for each.
func TestReport_ManyStubbornHandlers(t *testing.T) {
	inBubbleWith(t, &server.Options{Grace: time.Second}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("stubborn", func(context.Context, *servercontext.Request, tagged) (any, error) {
			sitsHere(time.Minute)
			return nil, nil
		})
		const n = 500
		for id := range n {
			p.Call(id, "stubborn", nil)
		}
		p.settle()
		p.ss.CancelAll(cancellation.Peer, "")
		time.Sleep(2 * time.Second)
		p.settle()
		require.Len(t, f.Ignoring(), n)
		seen := map[string]bool{}
		for _, u := range f.Ignoring() {
			require.Contains(t, u.Stack, "server_test.sitsHere")
			goroutine, _, _ := strings.Cut(u.Stack, " [")
			seen[goroutine] = true
		}
		require.Len(t, seen, n, "each has the stack of its own handler")
	})
}

// A handler that fails for a reason of its own after the cancel: operators see it,
// the wire does not.
func TestCase45_FailureAfterTheCancel(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		for i, tool := range []string{"cancel_error", "cancel_panic"} {
			p.Call(i, tool, tagged{Tag: tool})
			f.Await(tool, "started")
			p.Cancel(i, "r")
			f.Done(i)
			p.Silent(i)
			warned := f.logs.Above(slog.LevelWarn)
			require.Len(t, warned, i+1)
			require.Equal(t, "request cancelled", warned[i].Message)
			require.Equal(t, "peer", warned[i].Attrs["origin"])
		}
		require.ErrorIs(t, f.logs.Above(slog.LevelWarn)[0].Attrs["error"].(error), errOwn)
		require.Contains(t, f.logs.Above(slog.LevelWarn)[1].Attrs["stack"], "addTools")
		for i, tool := range []string{"cancel_wait", "cancel_value"} {
			p.Call(10+i, tool, tagged{Tag: tool})
			f.Await(tool, "started")
			p.Cancel(10+i, "r")
			f.Done(10 + i)
		}
		p.settle()
		require.Len(t, f.logs.Above(slog.LevelWarn), 2, "a handler that stopped is no news")
	})
}

// Text from the peer reaches logs bounded, and as one attribute.
func TestCase19_ReasonsAreCarriedAndHarmless(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, reason := range map[string]string{
		"plain":   "user pressed stop",
		"control": "a\x00b\x1b[2J\r\nc\u2028d",
		"format":  "%s%n%d%!v(PANIC=x)",
		"big":     big,
		"empty":   "",
		"unicode": "止めて 🛑",
	} {
		t.Run(name, func(t *testing.T) {
			eachEraWith(t, nil, peerOptions{Caps: allCaps}, func(t *testing.T, f *fixture, p *peer) {
				want := reason
				if len(want) > cancellation.MaxReason {
					want = want[:cancellation.MaxReason]
				}
				f.tool("all", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
					req.Token().OnCancel(func(e *cancellation.Error) { f.add("hook", "ran", e) })
					f.add("all", "started", nil)
					if !req.Stateless() {
						f.add("nested", "asked", req.Ping(context.Background()))
					}
					<-ctx.Done()
					f.add("cause", "is", context.Cause(ctx))
					f.add("token", "is", req.Token().Err())
					return nil, ctx.Err()
				})
				p.Call(1, "all", nil)
				f.Await("all", "started")
				p.settle()
				p.Cancel(1, reason)
				for _, tag := range []string{"hook/ran", "cause/is", "token/is"} {
					name, what, _ := strings.Cut(tag, "/")
					require.Equal(t, event{name, what, "peer", want}, f.Await(name, what))
				}
				require.Equal(t, want, f.Done(1).Reason)
				p.settle()
				if p.handshake() {
					require.Equal(t, want, f.Await("nested", "asked").Reason)
					got, _ := p.Sent("notifications/cancelled")[0].Param("reason").(string)
					require.Equal(t, want, got)
				}
				logged := f.logs.Find("request cancelled")
				require.Len(t, logged, 1)
				require.Equal(t, want, logged[0].Attrs["reason"])
				require.Empty(t, f.logs.Above(slog.LevelWarn))
			})
		})
	}
}

// InFlight tells operators what runs, and Cancel stops one of them.
func TestInFlight(t *testing.T) {
	eachEraWith(t, nil, peerOptions{ID: "s1"}, func(t *testing.T, f *fixture, p *peer) {
		start := time.Now()
		for id, tag := range []string{"a", "b", "c"} {
			p.Call(fmt.Sprint(id), "cancel_wait", tagged{Tag: tag})
			time.Sleep(time.Second)
		}
		p.Call(3, "cancel_ignore", tagged{MS: 60_000})
		p.settle()
		p.Cancel(3, "peer")
		all := f.InFlight()
		require.Len(t, all, 4)
		require.Equal(t, server.InFlight{Session: "s1", ID: `"0"`, Method: "tools/call", Name: "cancel_wait", Accepted: start}, all[0])
		require.Equal(t, cancellation.Peer, all[3].Cancelled.Origin)
		require.Equal(t, server.Stats{InFlight: 3, Lingering: 1, Sessions: 1}, f.Stats())
		require.False(t, f.Server.Cancel("s2", `"0"`, ""))
		require.False(t, f.Server.Cancel("s1", `0`, ""), "a number is no string")
		require.False(t, f.Server.Cancel("s1", `broken`, ""))
		require.True(t, f.Server.Cancel("s1", `"0"`, "operator"))
		require.False(t, f.Server.Cancel("s1", `"0"`, "again"))
		m := p.Answer("0")
		require.Contains(t, m.Text(), `cancelled by shutdown: "operator"`)
		require.Equal(t, event{"a", "observed", "shutdown", "operator"}, f.Await("a", "observed"))
		require.True(t, p.ss.Cancel(`"1"`, cancellation.Disconnect, "transport"))
		require.False(t, p.ss.Cancel(`x`, cancellation.Disconnect, ""))
		p.Silent("1")
		require.Equal(t, 1, p.ss.CancelAll(cancellation.SessionEnd, ""))
		p.Silent("2")
	})
}

// An operator's ErrorText decides what the peer gets to see.
func TestErrorText(t *testing.T) {
	o := &server.Options{ErrorText: func(err error) string {
		if errors.Is(err, errOwn) {
			return "please try again"
		}
		return err.Error()
	}}
	eachEraWith(t, o, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "cancel_error", tagged{MS: 1})
		m := p.Answer(1)
		require.Equal(t, "please try again", m.Text())
		require.NotContains(t, m.Raw, errOwn.Error())
		server.MustAddMethod(f.Server, "acme/fail", func(context.Context, *servercontext.Request, tagged) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", errOwn)
		})
		p.Request(2, "acme/fail", nil)
		require.Equal(t, "please try again", p.Answer(2).Error.Message)
		require.ErrorIs(t, f.Done(2).Err, errOwn, "operators see all of it")
	})
}
