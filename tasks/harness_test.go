package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// M is a JSON object of a test.
type M = map[string]any

// rig is a server with tasks.
type rig struct {
	t       *testing.T
	server  *server.Server
	manager *tasks.Manager
	memory  *tasks.Memory // nil when the test has a store of its own

	mu           sync.Mutex
	unresponsive []server.Unresponsive
	done         []server.RequestDone
}

func newRig(t *testing.T, o *tasks.Options, so *server.Options) *rig {
	t.Helper()
	r := &rig{t: t}
	var options tasks.Options
	if o != nil {
		options = *o
	}
	if options.Store == nil {
		r.memory = tasks.NewMemory(0, 0)
		options.Store = r.memory
	}
	var serverOptions server.Options
	if so != nil {
		serverOptions = *so
	}
	if serverOptions.Logger == nil {
		serverOptions.Logger = slog.New(slog.DiscardHandler)
	}
	serverOptions.Observer = &server.Observer{
		Unresponsive: func(u server.Unresponsive) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.unresponsive = append(r.unresponsive, u)
		},
		RequestDone: func(d server.RequestDone) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.done = append(r.done, d)
		},
	}
	r.server = server.New(&mcp.Implementation{Name: "test", Version: "1"}, &serverOptions)
	var err error
	r.manager, err = tasks.Enable(r.server, &options)
	require.NoError(t, err)
	t.Cleanup(func() {
		r.manager.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.NoError(t, r.server.Stateless().Wait(ctx), "handlers are left: %v", r.server.InFlight())
	})
	return r
}

// inBubble runs test with fake time; in it everything has settled when it says so.
func inBubble(t *testing.T, o *tasks.Options, test func(t *testing.T, r *rig)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) { test(t, newRig(t, o, nil)) })
}

func (r *rig) reportedDone() []server.RequestDone {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.done)
}

func (r *rig) reportedUnresponsive() []server.Unresponsive {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.unresponsive)
}

// handler is the handler of a test's tool.
type handler = func(ctx context.Context, req *servercontext.Request, in json.RawMessage) (*mcp.CallToolResult, error)

// add registers a tool.
func (r *rig) add(name string, o tasks.ToolOptions, h handler) {
	r.t.Helper()
	require.NoError(r.t, server.AddTool(r.server, &mcp.Tool{Name: name, InputSchema: M{"type": "object"}}, h, tasks.Tool(o)))
}

func text(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// untilStopped waits for its token.
func untilStopped(ctx context.Context, _ *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
	<-ctx.Done()
	return nil, cancellation.Checkpoint(ctx)
}

// lasting is a handler that takes its time and can be stopped.
func lasting(d time.Duration) handler {
	return func(ctx context.Context, _ *servercontext.Request, _ json.RawMessage) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(d):
			return text("done"), nil
		case <-ctx.Done():
			return nil, cancellation.Checkpoint(ctx)
		}
	}
}

// client is a client of the stateless era, as over HTTP: each request stands alone.
type client struct {
	r          *rig
	principal  string
	caps       M
	mu         sync.Mutex
	lastNumber int
}

func (r *rig) client() *client {
	return &client{r: r, caps: M{"elicitation": M{}, "sampling": M{}, "roots": M{}, "extensions": M{tasks.ID: M{}}}}
}

// as is the client of somebody who has logged in.
func (r *rig) as(principal string) *client {
	c := r.client()
	c.principal = principal
	return c
}

// without is a client that does not know tasks.
func (r *rig) without() *client {
	c := r.client()
	delete(c.caps, "extensions")
	return c
}

// exchange is one request and what came back.
type exchange struct {
	c        *client
	call     *server.Call
	mu       sync.Mutex
	sent     []message
	answered chan struct{}
	silenced bool
	answer   message
}

type message struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (e *exchange) Send(msg []byte) error {
	var m message
	if err := json.Unmarshal(msg, &m); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, m)
	return nil
}

func (e *exchange) Answer(msg []byte, _ int) {
	if err := json.Unmarshal(msg, &e.answer); err != nil {
		panic(err)
	}
	close(e.answered)
}

func (e *exchange) Silence() {
	e.mu.Lock()
	e.silenced = true
	e.mu.Unlock()
	close(e.answered)
}

func (e *exchange) messages(method string) (params []json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.sent {
		if m.Method == method {
			params = append(params, m.Params)
		}
	}
	return params
}

// start sends a request and does not wait for its answer.
func (c *client) start(method string, params M) *exchange {
	c.mu.Lock()
	c.lastNumber++
	id := c.lastNumber
	c.mu.Unlock()
	params = maps.Clone(params)
	if params == nil {
		params = M{}
	}
	params["_meta"] = M{
		mcp.MetaKeyProtocolVersion: server.Version20260728, mcp.MetaKeyClientCapabilities: c.caps,
		"progressToken": id, mcp.MetaKeyLogLevel: "debug",
	}
	raw, err := json.Marshal(M{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	e := &exchange{c: c, answered: make(chan struct{})}
	x := &server.Extra{Stateless: true}
	if c.principal != "" {
		x.TokenInfo = &auth.TokenInfo{UserID: c.principal}
	}
	c.r.server.Stateless().Receive(raw, e, x, func(call *server.Call) {
		e.call = call
		go call.Run()
	})
	return e
}

// wait waits for the answer.
func (e *exchange) wait() *message {
	<-e.answered
	return &e.answer
}

func (c *client) request(method string, params M) *message { return c.start(method, params).wait() }

func (c *client) callTool(tool string, more M) *message {
	return c.request("tools/call", toolParams(tool, more))
}

func (c *client) startTool(tool string, more M) *exchange {
	return c.start("tools/call", toolParams(tool, more))
}

func toolParams(tool string, more M) M {
	params := M{"name": tool, "arguments": M{}}
	maps.Copy(params, more)
	return params
}

// state is a task, or a result, as the client sees it.
type state struct {
	ResultType    string `json:"resultType"`
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage"`
	LastUpdatedAt string `json:"lastUpdatedAt"`
	TTLMs         *int64 `json:"ttlMs"`
	InputRequests map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"inputRequests"`
	RequestState string  `json:"requestState"`
	Result       *result `json:"result"`
	Error        *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	Content []content `json:"content"`
	IsError bool      `json:"isError"`

	raw string
}

type result struct {
	Content []content `json:"content"`
	IsError bool      `json:"isError"`
}

type content struct {
	Text string `json:"text"`
}

func (s *state) keys() []string { return slices.Sorted(maps.Keys(s.InputRequests)) }

func (m *message) state(t *testing.T) *state {
	t.Helper()
	require.Nil(t, m.Error)
	s := &state{raw: string(m.Result)}
	require.NoError(t, json.Unmarshal(m.Result, s))
	return s
}

// begin calls a tool that becomes a task and returns the task's id.
func (c *client) begin(t *testing.T, tool string, more M) string {
	t.Helper()
	s := c.callTool(tool, more).state(t)
	require.Equal(t, "task", s.ResultType, s.raw)
	require.NotEmpty(t, s.TaskID)
	return s.TaskID
}

func (c *client) get(t *testing.T, id string) *state {
	t.Helper()
	s := c.request("tasks/get", M{"taskId": id}).state(t)
	require.Equal(t, "complete", s.ResultType)
	require.Equal(t, id, s.TaskID)
	return s
}

func (c *client) cancel(t *testing.T, id string) {
	t.Helper()
	requireAck(t, c.request("tasks/cancel", M{"taskId": id}))
}

func (c *client) update(t *testing.T, id string, responses M) {
	t.Helper()
	requireAck(t, c.request("tasks/update", M{"taskId": id, "inputResponses": responses}))
}

// requireAck requires an acknowledgement, which says nothing else.
func requireAck(t *testing.T, m *message) {
	t.Helper()
	require.Nil(t, m.Error)
	var fields M
	require.NoError(t, json.Unmarshal(m.Result, &fields))
	delete(fields, "_meta")
	require.Equal(t, M{"resultType": "complete"}, fields)
}

func requireUnknown(t *testing.T, m *message) {
	t.Helper()
	require.NotNil(t, m.Error, string(m.Result))
	require.Equal(t, -32602, m.Error.Code)
	require.Equal(t, "there is no such task, or no longer", m.Error.Message)
}

// settle waits until nothing moves any more.
func settle() { synctest.Wait() }

func accept(content M) M { return M{"action": "accept", "content": content} }

const form = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`

func ask(ctx context.Context, req *servercontext.Request, message string) (string, error) {
	answer, err := req.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(form)})
	if err != nil {
		return "", err
	}
	name, _ := answer.Content["name"].(string)
	return name, nil
}
