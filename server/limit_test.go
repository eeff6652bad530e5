package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

// A limit answers the call with an error that names it, unlike a cancel.
func TestCase43_LimitIsAnswered(t *testing.T) {
	for name, tt := range map[string]struct {
		server server.Options
		tool   server.ToolOptions
		want   time.Duration // 0: none
	}{
		"server":                  {server.Options{Timeout: 2 * time.Second}, server.ToolOptions{}, 2 * time.Second},
		"tool":                    {server.Options{Timeout: 2 * time.Second}, server.ToolOptions{Timeout: time.Second}, time.Second},
		"tool, longer":            {server.Options{Timeout: 2 * time.Second}, server.ToolOptions{Timeout: 4 * time.Second}, 4 * time.Second},
		"tool without":            {server.Options{Timeout: 2 * time.Second}, server.ToolOptions{Timeout: -1}, 0},
		"hard maximum":            {server.Options{MaxTimeout: time.Second}, server.ToolOptions{}, time.Second},
		"hard maximum first":      {server.Options{Timeout: 2 * time.Second, MaxTimeout: time.Second}, server.ToolOptions{}, time.Second},
		"hard maximum of a tool":  {server.Options{MaxTimeout: 2 * time.Second}, server.ToolOptions{MaxTimeout: 3 * time.Second}, 3 * time.Second},
		"hard maximum holds":      {server.Options{MaxTimeout: 2 * time.Second}, server.ToolOptions{Timeout: -1}, 2 * time.Second},
		"hard maximum is no goal": {server.Options{Timeout: time.Second, MaxTimeout: 3 * time.Second}, server.ToolOptions{}, time.Second},
		"none":                    {server.Options{}, server.ToolOptions{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachEraWith(t, &tt.server, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
				f.tool("limited", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
					return "done", f.wait(ctx, tagged{Tag: "a", MS: 10_000})
				}, &tt.tool)
				start := time.Now()
				p.Call(1, "limited", nil)
				m := p.Answer(1)
				if tt.want == 0 {
					require.Equal(t, "done", p.Text(1))
					return
				}
				require.Equal(t, tt.want, m.At.Sub(start))
				require.Nil(t, m.Error, m.Raw)
				require.True(t, m.IsError())
				require.Contains(t, m.Text(), "timeout")
				require.Contains(t, m.Text(), tt.want.String())
				require.Equal(t, "timeout", f.Await("a", "observed").Origin)
				d := f.Done(1)
				require.Equal(t, cancellation.Timeout, d.Origin)
				require.ErrorIs(t, d.Err, context.DeadlineExceeded)
				require.True(t, d.Answered)
			})
		})
	}
}

// The deadline is the token's business: the handler's context has none of its own.
func TestLimit_ContextEndsWithTheTimeout(t *testing.T) {
	eachEraWith(t, &server.Options{Timeout: time.Second}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("cause", func(ctx context.Context, _ *servercontext.Request, _ tagged) (any, error) {
			<-ctx.Done()
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			require.ErrorIs(t, context.Cause(ctx), cancellation.ErrCancelled)
			return "done", nil // a value is answered though it comes late
		})
		p.Call(1, "cause", nil)
		require.Equal(t, "done", p.Text(1))
	})
}

// Progress starts the limit anew, up to the hard maximum and no further.
func TestLimit_ResetsOnProgress(t *testing.T) {
	report := func(every time.Duration) func(context.Context, *servercontext.Request, tagged) (any, error) {
		return func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			for i := range 20 {
				if err := req.Progress(ctx, float64(i), 0, ""); err != nil {
					return nil, err
				}
				time.Sleep(every)
			}
			return "done", cancellation.Checkpoint(ctx)
		}
	}
	for name, tt := range map[string]struct {
		server server.Options
		tool   server.ToolOptions
		every  time.Duration
		want   time.Duration // when the limit hits; 0: never
	}{
		"goes on":      {server.Options{Timeout: time.Second, ResetOnProgress: true}, server.ToolOptions{}, 900 * time.Millisecond, 0},
		"tool's":       {server.Options{Timeout: time.Second}, server.ToolOptions{ResetOnProgress: true}, 900 * time.Millisecond, 0},
		"too seldom":   {server.Options{Timeout: time.Second, ResetOnProgress: true}, server.ToolOptions{}, 1100 * time.Millisecond, 1100 * time.Millisecond},
		"not asked":    {server.Options{Timeout: time.Second}, server.ToolOptions{}, 900 * time.Millisecond, 1800 * time.Millisecond},
		"hard maximum": {server.Options{Timeout: time.Second, ResetOnProgress: true, MaxTimeout: 3 * time.Second}, server.ToolOptions{}, 900 * time.Millisecond, 3600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			eachEraWith(t, &tt.server, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
				f.tool("report", report(tt.every), &tt.tool)
				start := time.Now()
				p.Call(1, "report", nil, M{"progressToken": 1})
				m := p.Answer(1)
				if tt.want == 0 {
					require.Equal(t, "done", p.Text(1))
					return
				}
				require.True(t, m.IsError())
				require.Equal(t, tt.want, m.At.Sub(start), "the first report after the limit sees it")
				if tt.server.MaxTimeout > 0 {
					require.Equal(t, 3*time.Second, f.Done(1).Requested.Sub(start))
					require.Contains(t, m.Text(), "hard maximum of 3s")
				}
			})
		})
	}
}

// A request may set its own limit, shorten it, prolong it and remove it, within
// the hard maximum.
func TestLimit_SetByTheRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		options server.Options
		set     []time.Duration // one each second
		want    time.Duration   // since the start; 0: none
	}{
		"set":          {server.Options{}, []time.Duration{3 * time.Second}, 3 * time.Second},
		"shortened":    {server.Options{Timeout: time.Minute}, []time.Duration{2 * time.Second}, 2 * time.Second},
		"prolonged":    {server.Options{Timeout: 2 * time.Second}, []time.Duration{4 * time.Second}, 4 * time.Second},
		"again":        {server.Options{}, []time.Duration{3 * time.Second, 5 * time.Second}, 6 * time.Second},
		"removed":      {server.Options{Timeout: 2 * time.Second}, []time.Duration{0}, 0},
		"negative":     {server.Options{Timeout: 2 * time.Second}, []time.Duration{-1}, 0},
		"hard maximum": {server.Options{MaxTimeout: 5 * time.Second}, []time.Duration{3 * time.Second, time.Minute, 0}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			eachEraWith(t, &tt.options, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
				f.tool("own", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
					for i, d := range tt.set {
						if i > 0 {
							time.Sleep(time.Second)
						}
						req.SetTimeout(d)
					}
					return "done", f.wait(ctx, tagged{Tag: "a", MS: 20_000})
				})
				start := time.Now()
				p.Call(1, "own", nil)
				m := p.Answer(1)
				if tt.want == 0 {
					require.Equal(t, "done", p.Text(1))
					return
				}
				require.True(t, m.IsError(), m.Raw)
				require.Equal(t, tt.want, m.At.Sub(start))
			})
		})
	}
}

// Waiting for a slot does not count, and a limit set too late does nothing.
func TestLimit_StartsWithTheHandler(t *testing.T) {
	eachEraWith(t, &server.Options{MaxConcurrent: 1, Timeout: time.Second}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		var late *servercontext.Request
		f.tool("late", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
			late = req
			return "done", nil
		})
		for id := range 5 {
			p.Call(id, "cancel_wait", tagged{MS: 800})
		}
		p.Call(5, "late", nil)
		for id := range 6 {
			require.Equal(t, "done", p.Text(id))
		}
		late.SetTimeout(time.Millisecond)
		time.Sleep(time.Minute)
		require.False(t, f.Done(5).Cancelled)
	})
}

// The owed answer comes after the grace period when the handler does not; its late
// result is dropped and counted.
func TestLimit_AnsweredForAHandlerThatIgnoresIt(t *testing.T) {
	eachEraWith(t, &server.Options{Timeout: time.Second, Grace: 2 * time.Second}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		start := time.Now()
		p.Call(1, "cancel_ignore", tagged{Tag: "a", MS: 60_000})
		m := p.Answer(1)
		require.Equal(t, 3*time.Second, m.At.Sub(start))
		require.True(t, m.IsError())
		require.Contains(t, m.Text(), "timeout")
		p.settle()
		require.Len(t, f.Ignoring(), 1)
		require.Zero(t, f.Stats().InFlight)
		require.Equal(t, 1, f.Stats().Lingering)
		p.Call(1, "echo", M{"text": "the id is free"})
		require.Equal(t, "the id is free", p.Text(1))
		f.Await("a", "returned")
		p.settle()
		require.EqualValues(t, 1, f.Stats().Dropped)
		require.Zero(t, f.Stats().Lingering)
	})
}

// Subscriptions last until somebody ends them.
func TestLimit_NoneForSubscriptions(t *testing.T) {
	o := &server.Options{Timeout: time.Second, MaxTimeout: time.Minute, MaxConcurrent: 1}
	inBubbleWith(t, o, peerOptions{Version: server.Version20260728}, func(t *testing.T, f *fixture, p *peer) {
		for id := range 3 {
			p.Request(id, "subscriptions/listen", M{"notifications": M{"toolsListChanged": true}})
		}
		p.Call(3, "echo", M{"text": "not kept waiting"})
		require.Equal(t, "not kept waiting", p.Text(3))
		time.Sleep(time.Hour)
		for id := range 3 {
			p.Pending(id)
			p.Cancel(id, "")
			p.Silent(id)
		}
	})
}
