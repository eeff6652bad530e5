package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/tasks"
)

// taskPoll is how often clients are told to ask for a task.
const taskPoll = 200 * time.Millisecond

// A taskClient is a client that knows tasks, which the official Go SDK's does not. It
// keeps no state and no stream: each request is a POST of its own, as the stateless
// era has it.
type taskClient struct {
	endpoint    string
	connections *http.Transport
	last        int // id of the last request
}

func newTaskClient(endpoint string) *taskClient {
	return &taskClient{endpoint: endpoint, connections: &http.Transport{}}
}

// leave closes the client's connections. Tasks do not notice.
func (c *taskClient) leave() { c.connections.CloseIdleConnections() }

// A taskView is what tasks/get says.
type taskView struct {
	ResultType    string          `json:"resultType"`
	TaskID        string          `json:"taskId"`
	Status        tasks.Status    `json:"status"`
	StatusMessage string          `json:"statusMessage"`
	Result        json.RawMessage `json:"result"`
	Error         json.RawMessage `json:"error"`
}

// done is how many postings the last report was about.
func (v *taskView) done() float64 {
	var done float64
	_, _ = fmt.Sscanf(v.StatusMessage, "%g of", &done) // other messages report nothing
	return done
}

// begin calls a tool and returns the task that the call has become.
func (c *taskClient) begin(ctx context.Context, tool string, arguments map[string]any) (*taskView, error) {
	var v taskView
	err := c.request(ctx, methodCall, tool, map[string]any{"name": tool, "arguments": arguments}, &v)
	if err == nil && v.ResultType != "task" {
		err = errors.New("the call has not become a task")
	}
	return &v, err
}

func (c *taskClient) get(ctx context.Context, id string) (*taskView, error) {
	var v taskView
	return &v, c.request(ctx, "tasks/get", id, map[string]any{"taskId": id}, &v)
}

func (c *taskClient) cancel(ctx context.Context, id string) error {
	return c.request(ctx, "tasks/cancel", id, map[string]any{"taskId": id}, nil)
}

// until asks for a task again and again, until what it is told is enough.
func (c *taskClient) until(ctx context.Context, id string, enough func(*taskView) bool) (*taskView, error) {
	for {
		v, err := c.get(ctx, id)
		if err != nil || enough(v) {
			return v, err
		}
		if err := pause(ctx, taskPoll); err != nil {
			return nil, err
		}
	}
}

// structured decodes the result of a tool's call, as a task carries it.
func structured(result json.RawMessage, into any) error {
	var call struct {
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(result, &call); err != nil {
		return err
	}
	if call.IsError && len(call.Content) > 0 {
		return fmt.Errorf("the tool failed: %s", call.Content[0].Text)
	}
	return json.Unmarshal(call.StructuredContent, into)
}

// request sends one request and decodes its result; into may be nil.
func (c *taskClient) request(ctx context.Context, method, name string, params map[string]any, into any) error {
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    server.Version20260728,
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "longtool-story", "version": "1.0.0"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{tasks.ID: struct{}{}}},
	}
	c.last++
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.last, "method": method, "params": params})
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "application/json, text/event-stream")
	post.Header.Set("MCP-Protocol-Version", server.Version20260728)
	post.Header.Set("Mcp-Method", method)
	post.Header.Set("Mcp-Name", name)
	response, err := c.connections.RoundTrip(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Result json.RawMessage           `json:"result"`
		Error  *struct{ Message string } `json:"error"`
	}
	text, err := message(response)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w (HTTP status %d)", method, err, response.StatusCode)
	case answer.Error != nil:
		return fmt.Errorf("%s: %s", method, answer.Error.Message)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer.Result, into)
}

// message is the answer in a response: its body, or the last event of a stream.
func message(response *http.Response) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != "text/event-stream" {
		return io.ReadAll(response.Body)
	}
	var last []byte
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is && data != "" {
			last = []byte(data)
		}
	}
	return last, lines.Err()
}
