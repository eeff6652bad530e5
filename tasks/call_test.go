package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	possible = tasks.ToolOptions{Support: tasks.WhenPossible}
	always   = tasks.ToolOptions{Support: tasks.Always}
	atOnce   = tasks.ToolOptions{Support: tasks.WhenPossible, After: -1}
)

// What the wire looks like, byte for byte. A bubble's clock begins with the year 2000.
func TestCallBecomesTask(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("slow", possible, lasting(time.Second))
		c := r.client()
		e := c.startTool("slow", nil)
		time.Sleep(99 * time.Millisecond)
		settle()
		select {
		case <-e.answered:
			require.Fail(t, "answered too early")
		default:
		}
		created := e.wait().state(t)
		const info = `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}`
		const times = `"createdAt":"2000-01-01T00:00:00.100Z","lastUpdatedAt":"2000-01-01T00:00:00.100Z","ttlMs":86400000,"pollIntervalMs":1000`
		assert.JSONEq(t, `{"resultType":"task","taskId":"`+created.TaskID+`","status":"working",`+times+info+`}`, created.raw)
		assert.Len(t, created.TaskID, 26)
		assert.Equal(t, 1, r.manager.Running())

		assert.JSONEq(t, `{"resultType":"complete","taskId":"`+created.TaskID+`","status":"working",`+times+info+`}`, c.get(t, created.TaskID).raw)
		time.Sleep(time.Second)
		settle()
		assert.JSONEq(t, `{"resultType":"complete","taskId":"`+created.TaskID+`","status":"completed",
			"createdAt":"2000-01-01T00:00:00.100Z","lastUpdatedAt":"2000-01-01T00:00:01.000Z","ttlMs":86400000,"pollIntervalMs":1000,
			"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]`+info+`}`+info+`}`, c.get(t, created.TaskID).raw)
		assert.Equal(t, 0, r.manager.Running())
	})
}

func TestQuickCallIsNoTask(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("quick", possible, lasting(50*time.Millisecond))
		s := r.client().callTool("quick", nil).state(t)
		assert.Equal(t, "complete", s.ResultType)
		assert.Empty(t, s.TaskID)
		assert.Equal(t, "done", s.Content[0].Text)
		assert.Equal(t, 0, r.memory.Len())
		settle()
		require.Len(t, r.reportedDone(), 1, "the work is part of its request")
	})
}

func TestSupport(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("never", tasks.ToolOptions{}, lasting(time.Minute))
		r.add("possible", possible, lasting(time.Minute))
		r.add("always", always, lasting(time.Minute))
		require.NoError(t, server.AddTool(r.server, &mcp.Tool{Name: "plain", InputSchema: M{"type": "object"}}, lasting(time.Minute)))
		for _, c := range []struct {
			tool    string
			knows   bool
			outcome string
		}{
			{"plain", true, "complete"}, {"never", true, "complete"}, {"possible", true, "task"}, {"always", true, "task"},
			{"plain", false, "complete"}, {"never", false, "complete"}, {"possible", false, "complete"},
		} {
			client := r.client()
			if !c.knows {
				client = r.without()
			}
			// What clients of an older extension sent is ignored.
			s := client.callTool(c.tool, M{"task": M{"ttl": 1000}}).state(t)
			assert.Equal(t, c.outcome, s.ResultType, c)
			if s.TaskID != "" {
				client.cancel(t, s.TaskID)
			}
		}
		failure := r.without().callTool("always", nil).Error
		require.NotNil(t, failure)
		assert.Equal(t, -32021, failure.Code)
		assert.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(failure.Data))
	})
}

// A tool that must be a task is one even if it has ended before anybody could tell.
func TestAlwaysIsAlwaysATask(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("quick", always, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return text("done"), nil
		})
		r.add("fails", always, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, errors.New("no luck")
		})
		r.add("refuses", always, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, &sdkrpc.Error{Code: -32001, Message: "not today"}
		})
		c := r.client()
		s := c.get(t, c.begin(t, "quick", nil))
		assert.Equal(t, "completed", s.Status)
		assert.Equal(t, "done", s.Result.Content[0].Text)
		s = c.get(t, c.begin(t, "fails", nil))
		assert.Equal(t, "completed", s.Status)
		assert.True(t, s.Result.IsError)
		assert.Equal(t, -32001, c.callTool("refuses", nil).Error.Code, "an error before there is a task is the answer")
	})
}

func TestOutcomes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		slowly := func(result *mcp.CallToolResult, err error) handler {
			return func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
				time.Sleep(time.Second)
				return result, err
			}
		}
		r.add("error", possible, slowly(nil, errors.New("no luck")))
		r.add("protocol", possible, slowly(nil, &sdkrpc.Error{Code: -32001, Message: "not today", Data: json.RawMessage(`{"a":1}`)}))
		r.add("foreign", possible, slowly(nil, context.Canceled))
		r.add("panic", possible, func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			time.Sleep(time.Second)
			panic("no luck")
		})
		c := r.client()
		ids := map[string]string{}
		for _, tool := range []string{"error", "protocol", "foreign", "panic"} {
			ids[tool] = c.begin(t, tool, nil)
		}
		time.Sleep(2 * time.Second)
		settle()
		s := c.get(t, ids["error"])
		assert.Equal(t, "completed", s.Status)
		assert.True(t, s.Result.IsError)
		assert.Equal(t, "no luck", s.Result.Content[0].Text)
		s = c.get(t, ids["protocol"])
		assert.Equal(t, "failed", s.Status)
		assert.Equal(t, "not today", s.StatusMessage)
		assert.Nil(t, s.Result)
		assert.Equal(t, -32001, s.Error.Code)
		assert.JSONEq(t, `{"a":1}`, string(s.Error.Data))
		s = c.get(t, ids["foreign"])
		assert.Equal(t, "completed", s.Status, "nobody has asked it to stop")
		assert.True(t, s.Result.IsError)
		s = c.get(t, ids["panic"])
		assert.Equal(t, "failed", s.Status)
		assert.Equal(t, -32603, s.Error.Code)
		assert.NotContains(t, s.raw, "no luck", "what a panic says is for operators")
	})
}

// Rounds of input that come before the task are those of the request (multi round-trip).
func TestRoundsComeBeforeTheTask(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("rounds", always, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			answer, _ := req.InputResponses()["user"].(*mcp.ElicitResult)
			if answer == nil {
				return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
					"user": &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(form)},
				}}, nil
			}
			task, ok := tasks.FromContext(ctx)
			if !ok {
				return nil, errors.New("this will be no task")
			}
			if err := task.Begin(); err != nil {
				return nil, err
			}
			time.Sleep(time.Second)
			return text("%v, %s", answer.Content["name"], req.RequestState()), nil
		})
		c := r.client()
		first := c.callTool("rounds", nil).state(t)
		assert.Equal(t, "input_required", first.ResultType)
		assert.Empty(t, first.TaskID)
		assert.Equal(t, 0, r.memory.Len())
		before := time.Now()
		id := c.begin(t, "rounds", M{"requestState": first.RequestState, "inputResponses": M{"user": accept(M{"name": "Ada"})}})
		assert.Zero(t, time.Since(before), "Begin waits for nothing")
		time.Sleep(2 * time.Second)
		settle()
		s := c.get(t, id)
		assert.Equal(t, "Ada, asked", s.Result.Content[0].Text)
		assert.NotContains(t, s.raw, "requestState")
	})
}

func TestAtOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		var began atomic.Bool
		r.add("eager", atOnce, func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error) {
			began.Store(true)
			if answers := req.InputResponses(); answers["user"] == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
					"user": &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(form)},
				}}, nil
			}
			return text("done"), nil
		})
		c := r.client()
		before := time.Now()
		id := c.begin(t, "eager", nil)
		assert.Zero(t, time.Since(before))
		settle()
		assert.True(t, began.Load())
		assert.Equal(t, []string{"user"}, c.get(t, id).keys())
		c.update(t, id, M{"user": accept(M{"name": "Ada"})})
		settle()
		assert.Equal(t, "completed", c.get(t, id).Status)
	})
}

// Until there is a task, the request's cancel is the work's.
func TestCancelBeforeTheTask(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		seen := make(chan error, 1)
		r.add("slow", possible, func(ctx context.Context, _ *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
			<-ctx.Done()
			seen <- cancellation.Checkpoint(ctx)
			time.Sleep(time.Second)
			return text("late"), nil
		})
		e := r.client().startTool("slow", nil)
		time.Sleep(50 * time.Millisecond)
		require.True(t, e.call.Cancel(cancellation.Peer, "the user pressed stop"))
		assert.Equal(t, &cancellation.Error{Origin: cancellation.Peer, Reason: "the user pressed stop"}, <-seen)
		e.wait()
		assert.True(t, e.silenced)
		time.Sleep(time.Minute)
		settle()
		assert.Equal(t, 0, r.memory.Len())
		done := r.reportedDone()
		require.Len(t, done, 1)
		assert.True(t, done[0].Cancelled)
		assert.Equal(t, time.Second, done[0].Returned.Sub(done[0].Requested), "the request is over when its work is")
		assert.Zero(t, r.server.Stats().Lingering)
		assert.Zero(t, r.server.Stats().InFlight)
	})
}

func TestUnknownToolsAndHiddenOnes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		r.add("hidden", always, untilStopped)
		r.server.SetToolFilter(func(_ context.Context, _ *servercontext.Request, tool *mcp.Tool) bool { return tool.Name != "hidden" })
		for _, c := range []*client{r.client(), r.without()} {
			for _, tool := range []string{"hidden", "unknown"} {
				failure := c.callTool(tool, nil).Error
				require.NotNil(t, failure)
				assert.Equal(t, -32602, failure.Code)
			}
		}
		assert.Equal(t, -32602, r.client().request("tools/call", M{"name": 7}).Error.Code)
	})
}

// Where there is no room for a task, a call that can do without is answered itself.
func TestNoRoom(t *testing.T) {
	for name, o := range map[string]*tasks.Options{
		"the store is full":     {Store: tasks.NewMemory(1, 0)},
		"too many tasks run":    {MaxRunning: 1},
		"the store fails":       {Store: &unreliable{Store: tasks.NewMemory(0, 0), creates: 1}},
		"the bytes are used up": {Store: tasks.NewMemory(0, 2000)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, r *rig) {
				r.add("long", possible, untilStopped)
				r.add("possible", possible, lasting(time.Second))
				r.add("eager", atOnce, lasting(time.Second))
				r.add("always", always, lasting(time.Second))
				r.add("asks", possible, func(ctx context.Context, req *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
					_, err := ask(ctx, req, "Who?")
					return nil, err
				})
				c := r.client()
				long := c.begin(t, "long", nil)
				for _, tool := range []string{"possible", "eager"} {
					s := c.callTool(tool, nil).state(t)
					assert.Equal(t, "complete", s.ResultType)
					assert.Equal(t, "done", s.Content[0].Text)
				}
				s := c.callTool("asks", nil).state(t)
				assert.True(t, s.IsError, "only a task can wait for input here")
				failure := c.callTool("always", nil).Error
				require.NotNil(t, failure)
				assert.Equal(t, -32603, failure.Code)
				assert.Equal(t, 1, r.manager.Running())
				c.cancel(t, long)
				settle()
			})
		})
	}
}
