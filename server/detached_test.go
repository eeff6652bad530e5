package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaving is middleware that lets the work of tools/call leave after a second.
type leaving struct {
	ended chan server.Outcome
	work  chan *server.Detached // what has left
	kept  func() error          // nil: keeping succeeds
	o     server.Detachment
}

func newLeaving(f *fixture) *leaving {
	l := &leaving{ended: make(chan server.Outcome, 9), work: make(chan *server.Detached, 99)}
	f.Use(l.middleware)
	return l
}

func (l *leaving) middleware(next server.Handler) server.Handler {
	return func(ctx context.Context, req *servercontext.Request) (any, error) {
		if req.Method() != "tools/call" {
			return next(ctx, req)
		}
		o := l.o
		o.ID = "left"
		o.Ended = func(out server.Outcome) { l.ended <- out }
		d := server.Detach(ctx, req, next, o)
		d.Start()
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			if err := d.Leave(l.kept); err == nil {
				l.work <- d
				return M{"left": true}, nil
			} else if !errors.Is(err, server.ErrReturned) {
				d.Cancel(cancellation.Shutdown, err.Error())
			}
		case <-ctx.Done():
			var cancelled *cancellation.Error
			errors.As(cancellation.Checkpoint(ctx), &cancelled)
			d.Cancel(cancelled.Origin, cancelled.Reason)
		case <-d.Returned():
		}
		<-d.Returned()
		return d.Result()
	}
}

func TestInvariant_D1_AttendedWorkIsPartOfItsRequest(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		p.Call(1, "cancel_wait", tagged{Tag: "quick", MS: 100})
		assert.Equal(t, "done", p.Text(1))
		p.Call(2, "cancel_wait", tagged{Tag: "stopped"})
		f.Await("stopped", "started")
		p.Cancel(2, "enough")
		e := f.Await("stopped", "observed")
		assert.Equal(t, event{"stopped", "observed", "peer", "enough"}, e)
		p.Silent(2)
		done := f.Done(2)
		assert.Equal(t, cancellation.Peer, done.Origin)
		time.Sleep(time.Minute)
		p.settle()
		f.mu.Lock()
		count := 0
		for _, d := range f.done {
			if d.Method == "tools/call" {
				count++
			}
		}
		f.mu.Unlock()
		assert.Equal(t, 2, count, "two requests, and nothing else, are reported")
		assert.Empty(t, l.ended)
		stats := f.Stats()
		assert.Zero(t, stats.InFlight)
		assert.Zero(t, stats.Lingering)
	})
}

// The instants that operators measure are those of the work, and so is the stack.
func TestAttendedWorkIsWatched(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		newLeaving(f)
		f.tool("deaf", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
			time.Sleep(20 * time.Second)
			return nil, cancellation.Checkpoint(ctx)
		})
		p.Call(1, "deaf", tagged{})
		time.Sleep(100 * time.Millisecond)
		p.Cancel(1, "enough")
		done := f.Done(1)
		assert.Equal(t, 19900*time.Millisecond, done.Observed.Sub(done.Requested))
		require.Len(t, f.Ignoring(), 1)
		assert.Contains(t, f.Ignoring()[0].Stack, "TestAttendedWorkIsWatched")
	})
}

func TestInvariant_D2_EitherTheAnswerOrTheWorkLeaves(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		kept := 0
		l.kept = func() error { kept++; return nil }
		// It returns in the very instant in which it would leave.
		for id := range 20 {
			p.Call(id, "cancel_wait", tagged{Tag: "a", MS: 1000})
			m := p.Answer(id)
			p.settle()
			if left := m.object(t, m.Result)["left"] == true; left {
				out := <-l.ended
				require.NoError(t, out.Err)
				require.Equal(t, "done", (&message{Result: out.Result}).Text())
			} else {
				require.Equal(t, "done", m.Text())
			}
			require.Empty(t, l.ended)
		}
		// What cannot be kept does not leave.
		l.kept = func() error { return errors.New("no room") }
		p.Call("full", "cancel_wait", tagged{Tag: "full"})
		f.Await("full", "observed")
		m := p.Answer("full")
		assert.Contains(t, m.Text(), "no room")
		assert.Empty(t, l.ended)
	})
}

func TestInvariant_D3_WorkThatHasLeftOutlivesItsRequest(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		p.Call(1, "cancel_wait", tagged{Tag: "left"})
		assert.Equal(t, true, p.Result(1)["left"])
		work := <-l.work
		p.Cancel(1, "too late")
		p.ss.Close(cancellation.Disconnect, "the client is gone")
		time.Sleep(time.Hour)
		p.settle()
		assert.Equal(t, []string{"started"}, f.Events("left"))
		assert.Nil(t, work.Requested())

		require.True(t, work.Cancel(cancellation.Peer, "stop"))
		require.False(t, work.Cancel(cancellation.Timeout, "again"))
		out := <-l.ended
		assert.Equal(t, &cancellation.Error{Origin: cancellation.Peer, Reason: "stop"}, out.Cancelled)
		assert.ErrorIs(t, out.Err, cancellation.ErrCancelled)
	})
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		l.o.Timeout = time.Minute
		p.Call(1, "cancel_wait", tagged{Tag: "limited"})
		assert.Equal(t, true, p.Result(1)["left"])
		out := <-l.ended
		assert.Equal(t, cancellation.Timeout, out.Cancelled.Origin)
		assert.Contains(t, string(out.Result), `"isError":true`, "the outcome is what a client that waited would have got")
	})
}

func TestInvariant_D4_WorkThatHasLeftIsACallLikeAnyOther(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		f.tool("one", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
			f.add(in.Tag, "started", nil)
			time.Sleep(time.Duration(in.MS) * time.Millisecond)
			return "done", nil
		}, &server.ToolOptions{MaxConcurrent: 1})
		p.Call(1, "one", tagged{Tag: "first", MS: 60_000})
		assert.Equal(t, true, p.Result(1)["left"])
		work := <-l.work
		p.settle() // the answered request is listed until its handler has returned
		flight := f.InFlight()
		require.Len(t, flight, 1)
		assert.Equal(t, `"left"`, flight[0].ID)
		assert.Equal(t, "one", flight[0].Name)
		p.Call(2, "one", tagged{Tag: "second"})
		p.Pending(2)
		assert.Empty(t, f.Events("second"), "it holds its tool's slot")

		work.Cancel(cancellation.Peer, "stop")
		time.Sleep(10 * time.Second)
		p.settle()
		require.Len(t, f.Ignoring(), 1)
		assert.Contains(t, f.Ignoring()[0].Stack, "TestInvariant_D4")
		assert.Equal(t, "done", p.Text(2), "a cancelled handler holds nobody up")

		drained := make(chan error, 1)
		go func() { drained <- f.Drain(context.Background()) }()
		time.Sleep(20 * time.Second)
		assert.Empty(t, drained, "a shutdown waits for it")
		out := <-l.ended
		assert.NoError(t, out.Err)
		assert.Equal(t, "done", (&message{Result: out.Result}).Text())
		assert.NoError(t, <-drained)
		done := f.Done("left")
		assert.True(t, done.Cancelled)
		assert.Equal(t, "one", done.Name)
		assert.Zero(t, f.Stats().InFlight)
		assert.Zero(t, f.Stats().Lingering)
	})
}

// A shutdown cancels it, and lists it when it does not return.
func TestDrainOfWorkThatHasLeft(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		p.Call(1, "cancel_wait", tagged{Tag: "a"})
		p.Call(2, "cancel_ignore", tagged{Tag: "b", MS: 600_000})
		p.Result(1)
		p.Result(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := f.Drain(ctx)
		var left *server.DrainError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		assert.Equal(t, "cancel_ignore", left.Left[0].Name)
		out := <-l.ended
		assert.Equal(t, cancellation.Shutdown, out.Cancelled.Origin)
		assert.Empty(t, l.ended, "what has not returned has no outcome")
		out = <-l.ended
		assert.NoError(t, out.Err)
	})
}

func TestInvariant_D5_TheOutcomeIsToldOnceAndAfterTheReturn(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		p.Call(1, "cancel_ignore", tagged{Tag: "deaf", MS: 60_000})
		p.Result(1)
		work := <-l.work
		work.Cancel(cancellation.Timeout, "too long") // an answer would be owed, and given after the grace
		time.Sleep(50 * time.Second)
		p.settle()
		assert.Empty(t, l.ended)
		out := <-l.ended
		assert.NoError(t, out.Err)
		assert.Nil(t, out.Fault)
		assert.Equal(t, "done", (&message{Result: out.Result}).Text())

		f.tool("panics", func(context.Context, *servercontext.Request, tagged) (any, error) {
			time.Sleep(2 * time.Second)
			panic("no luck")
		})
		p.Call(2, "panics", tagged{})
		p.Result(2)
		out = <-l.ended
		assert.EqualValues(t, -32603, out.Fault.Code)
		assert.Nil(t, out.Result)
		time.Sleep(time.Minute)
		p.settle()
		assert.Empty(t, l.ended)
	})
}

// Nobody waits on a stream for work that has left, and its input is asked for otherwise.
func TestRoundsOfWorkThatHasLeft(t *testing.T) {
	eachEraWith(t, nil, peerOptions{Caps: M{"elicitation": M{}}}, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		l.o.Rounds = func(_ context.Context, state string, requests map[string]server.InputRequest) (map[string]json.RawMessage, error) {
			f.add("asked", state, nil)
			require.Equal(t, "elicitation/create", requests["who"].Method)
			return map[string]json.RawMessage{"who": json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)}, nil
		}
		f.tool("asks", func(_ context.Context, req *servercontext.Request, _ tagged) (any, error) {
			_ = req.Progress(context.Background(), 1, 2, "")
			if answer, ok := req.InputResponses()["who"].(*mcp.ElicitResult); ok {
				return answer.Content["name"].(string) + " " + req.RequestState(), nil
			}
			time.Sleep(2 * time.Second)
			_ = req.Progress(context.Background(), 2, 2, "")
			return &mcp.CallToolResult{RequestState: "state", InputRequests: mcp.InputRequestMap{
				"who": &mcp.ElicitParams{Message: "Who?"},
			}}, nil
		})
		p.Call(1, "asks", tagged{}, M{"progressToken": "t"})
		p.Result(1)
		out := <-l.ended
		require.NoError(t, out.Err)
		assert.Equal(t, "Ada state", (&message{Result: out.Result}).Text())
		assert.Equal(t, []string{"state"}, f.Events("asked"))
		assert.Empty(t, p.Sent("notifications/progress"))
	})
	// Without anybody to ask that is an error.
	eachEraWith(t, nil, peerOptions{Caps: M{"elicitation": M{}}}, func(t *testing.T, f *fixture, p *peer) {
		l := newLeaving(f)
		f.tool("asks", func(context.Context, *servercontext.Request, tagged) (any, error) {
			time.Sleep(2 * time.Second)
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": &mcp.ElicitParams{Message: "Who?"}}}, nil
		})
		p.Call(1, "asks", tagged{})
		p.Result(1)
		assert.ErrorIs(t, (<-l.ended).Err, servercontext.ErrNotSupported)
	})
}

func TestRevive(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		seen := make(chan string, 1)
		f.Use(func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				seen <- req.Method()
				return next(ctx, req)
			}
		})
		f.tool("again", func(_ context.Context, req *servercontext.Request, in tagged) (any, error) {
			return in.Tag + " " + req.TokenInfo().UserID + " " + req.RequestState(), nil
		})
		ended := make(chan server.Outcome, 1)
		o := server.Detachment{ID: "revived", Ended: func(out server.Outcome) { ended <- out }}
		r := server.Revival{
			Params: json.RawMessage(`{"name":"again","arguments":{"tag":"x"}}`), Version: server.Version20260728,
			State: "state", Extra: as("alice", nil),
		}
		d, err := f.Revive(t.Context(), r, o)
		require.NoError(t, err)
		require.Len(t, f.InFlight(), 1)
		d.Start()
		out := <-ended
		require.NoError(t, out.Err)
		assert.Equal(t, "x alice state", (&message{Result: out.Result}).Text())
		assert.Equal(t, "tools/call", <-seen, "middleware sees it")

		r.Version = "1999-01-01"
		_, err = f.Revive(t.Context(), r, o)
		require.Error(t, err)
		r.Version, r.Params = server.Version20251125, json.RawMessage(`{"name":"unknown"}`)
		_, err = f.Revive(t.Context(), r, o)
		require.ErrorContains(t, err, "unknown tool")
		r.Params = json.RawMessage(`{"name":"again"}`)
		synctest.Wait()
		require.NoError(t, f.Drain(t.Context()))
		_, err = f.Revive(t.Context(), r, o)
		require.ErrorIs(t, err, server.ErrDraining)
	})
}
