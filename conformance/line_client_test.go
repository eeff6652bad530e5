package conformance_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lineClient is a client over stdio that has every line of the server validated against the JSON
// schema of its revision. It belongs to one goroutine, but for what the reading one
// shares with it.
type lineClient struct {
	tests        atomic.Pointer[testing.T] // the test that it serves now; changed by serve
	version      string
	schema       *wireSchema
	command      *exec.Cmd
	capabilities M
	last         int

	writing sync.Mutex
	stdin   io.WriteCloser

	mu            sync.Mutex
	methods       map[string]string       // of the requests that were sent, by id
	answers       map[string]chan lineMsg // the same; each gets one
	notifications []lineMsg               // in order
	asked         []string                // methods of the server's requests, in order
	ignore        bool                    // the server's requests get no answer
	changed       chan struct{}           // closed, and made anew, when one of the above has changed
	read          chan struct{}           // closed when stdout has ended
	batches       chan []lineMsg          // answers to batches
}

// lineMsg is a message from the server.
type lineMsg struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params M               `json:"params"`
	Result M               `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data"`
	} `json:"error"`
}

const linePatience = surely

// everyCapability is what a client may have, in the newest revision's words; older servers ignore what
// they do not know.
var everyCapability = M{"sampling": M{}, "elicitation": M{"form": M{}, "url": M{}}, "roots": M{"listChanged": true}}

// startLines starts the fixture server and, in the handshake era, a session.
func startLines(t *testing.T, version string) *lineClient {
	t.Helper()
	schemas := loadWireSchemas(t)
	require.Contains(t, schemas, version)
	c := &lineClient{
		version: version, schema: schemas[version], capabilities: everyCapability,
		methods: map[string]string{}, answers: map[string]chan lineMsg{}, changed: make(chan struct{}), read: make(chan struct{}),
		batches: make(chan []lineMsg, 1),
	}
	c.tests.Store(t)
	c.command = exec.Command(everything(t), "stdio")
	var err error
	c.stdin, err = c.command.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.command.StdoutPipe()
	require.NoError(t, err)
	var log strings.Builder
	c.command.Stderr = &log
	require.NoError(t, c.command.Start())
	go c.reads(stdout)
	t.Cleanup(func() {
		c.tests.Store(t)
		assert.NoError(t, c.stdin.Close())
		<-c.read
		assert.NoError(t, c.command.Wait(), "the server's log:\n%s", &log)
	})
	return c
}

// serve makes the client serve a test, part of the one that it was started in.
func (c *lineClient) serve(t *testing.T) {
	c.tests.Store(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notifications, c.asked, c.ignore = nil, nil, false
}

func (c *lineClient) test() *testing.T { return c.tests.Load() }

func (c *lineClient) stateless() bool { return c.version == newest }

// since tells whether the revision is that one or a later one.
func (c *lineClient) since(version string) bool { return c.version >= version }

// write sends a line as it is.
func (c *lineClient) write(line string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := io.WriteString(c.stdin, line+"\n")
	assert.NoError(c.test(), err)
}

func (c *lineClient) send(m M) {
	m["jsonrpc"] = "2.0"
	c.write(string(encodeJSON(c.test(), m)))
}

func encodeJSON(t *testing.T, v any) []byte {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

func (c *lineClient) notify(method string, params M) { c.send(M{"method": method, "params": params}) }

// begin sends a request and returns its id. params may be nil.
func (c *lineClient) begin(method string, params M) (id int, answer chan lineMsg) {
	c.last++
	id = c.last
	sent := M{}
	for k, v := range params {
		sent[k] = v
	}
	meta := M{"progressToken": id}
	if c.stateless() {
		meta["io.modelcontextprotocol/protocolVersion"] = newest
		meta["io.modelcontextprotocol/clientCapabilities"] = c.capabilities
		meta["io.modelcontextprotocol/logLevel"] = "debug"
	}
	more, _ := sent["_meta"].(M)
	for k, v := range more {
		if meta[k] = v; v == nil {
			delete(meta, k)
		}
	}
	sent["_meta"] = meta
	key := string(encodeJSON(c.test(), id))
	answer = make(chan lineMsg, 1)
	c.mu.Lock()
	c.methods[key], c.answers[key] = method, answer
	c.mu.Unlock()
	c.send(M{"id": id, "method": method, "params": sent})
	return id, answer
}

// await waits for an answer.
func (c *lineClient) await(answer chan lineMsg, what string) lineMsg {
	c.test().Helper()
	select {
	case m := <-answer:
		return m
	case <-c.read:
		require.FailNow(c.test(), "the server has ended", what)
	case <-time.After(linePatience):
		require.FailNow(c.test(), "no answer", what)
	}
	return lineMsg{}
}

// ask makes a request and returns its answer, whatever it is.
func (c *lineClient) ask(method string, params M) lineMsg {
	c.test().Helper()
	_, answer := c.begin(method, params)
	return c.await(answer, string(encodeJSON(c.test(), M{method: params})))
}

// result makes a request that must succeed. What the server wants to know first it is told, round by round.
func (c *lineClient) result(method string, params M) M {
	c.test().Helper()
	for range 6 {
		m := c.ask(method, params)
		require.Nilf(c.test(), m.Error, "%s %v", method, params)
		if m.Result["resultType"] != "input_required" {
			return m.Result
		}
		require.True(c.test(), c.stateless(), "rounds are younger than this revision")
		params = c.nextRound(params, m.Result)
	}
	require.FailNow(c.test(), "no end of rounds", method)
	return nil
}

// nextRound is a request with the answers to what the server wants to know.
func (c *lineClient) nextRound(params, result M) M {
	again := M{}
	for k, v := range params {
		again[k] = v
	}
	responses := M{}
	wanted, _ := result["inputRequests"].(M)
	for key, v := range wanted {
		r := v.(M)
		inner, _ := r["params"].(M)
		responses[key] = inputFor(c.test(), r["method"].(string), inner)
	}
	again["inputResponses"] = responses
	delete(again, "requestState")
	if state, ok := result["requestState"]; ok {
		again["requestState"] = state
	}
	return again
}

// fails makes a request that must fail, with that code.
func (c *lineClient) fails(code int, method string, params M) lineMsg {
	c.test().Helper()
	m := c.ask(method, params)
	require.NotNilf(c.test(), m.Error, "%s %v is answered with %v", method, params, m.Result)
	assert.Equalf(c.test(), code, m.Error.Code, "%s %v: %s", method, params, m.Error.Message)
	return m
}

// tool calls a tool.
func (c *lineClient) tool(name string, arguments M) M {
	c.test().Helper()
	return c.result("tools/call", M{"name": name, "arguments": arguments})
}

// reads validates what the server writes, and answers what it asks.
func (c *lineClient) reads(stdout io.Reader) {
	defer close(c.read)
	in := bufio.NewReader(stdout)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			assert.Empty(c.test(), line, "a part of a line")
			return
		}
		line = strings.TrimSuffix(line, "\n")
		if c.schema.hasBatches && strings.HasPrefix(line, "[") {
			var parts []json.RawMessage
			assert.NoError(c.test(), json.Unmarshal([]byte(line), &parts), line)
			var all []lineMsg
			for _, part := range parts {
				all = append(all, c.valid(part, ""))
			}
			c.batches <- all
			continue
		}
		c.got([]byte(line))
	}
}

// valid is a message, which must fit the schema.
func (c *lineClient) valid(line []byte, method string) (m lineMsg) {
	assert.NoErrorf(c.test(), c.schema.check(line, method), "the server's answer to %q does not fit the schema of %s: %s", method, c.version, line)
	assert.NoErrorf(c.test(), json.Unmarshal(line, &m), "%s", line)
	return m
}

func (c *lineClient) got(line []byte) {
	var head lineMsg
	_ = json.Unmarshal(line, &head)
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.valid(line, c.methods[string(head.ID)])
	close(c.changed)
	c.changed = make(chan struct{})
	switch {
	case m.Method == "":
		answer := c.answers[string(m.ID)]
		delete(c.answers, string(m.ID))
		if assert.NotNilf(c.test(), answer, "nothing was asked for: %s", line) {
			answer <- m
		}
	case m.ID == nil:
		c.notifications = append(c.notifications, m)
	default:
		assert.Falsef(c.test(), c.stateless(), "a request in the stateless era: %s", line)
		c.asked = append(c.asked, m.Method)
		if !c.ignore {
			go c.send(M{"id": m.ID, "result": inputFor(c.test(), m.Method, m.Params)})
		}
	}
}

// forget makes the lists of what came begin anew.
func (c *lineClient) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notifications, c.asked = nil, nil
}

// notified waits for a notification since the last forget.
func (c *lineClient) notified(method string) lineMsg {
	c.test().Helper()
	return c.notifiedN(method, 1)[0]
}

// notifiedN waits for so many.
func (c *lineClient) notifiedN(method string, n int) (found []lineMsg) {
	c.test().Helper()
	late := time.After(linePatience)
	for {
		c.mu.Lock()
		found = slices.DeleteFunc(slices.Clone(c.notifications), func(m lineMsg) bool { return m.Method != method })
		changed := c.changed
		c.mu.Unlock()
		if len(found) >= n {
			return found
		}
		select {
		case <-changed:
		case <-late:
			require.FailNowf(c.test(), "no notification", "%d of %d: %s", len(found), n, method)
		}
	}
}

// questions are the methods of what the server has asked since the last forget.
func (c *lineClient) questions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// inputFor is a client's answer to a question.
func inputFor(t *testing.T, method string, params M) M {
	switch method {
	case "sampling/createMessage":
		return M{"role": "assistant", "model": "fixed", "stopReason": "endTurn", "content": M{"type": "text", "text": "Paris"}}
	case "roots/list":
		return M{"roots": []M{{"uri": "file:///srv/heed", "name": "heed"}}}
	case "elicitation/create":
		if params["mode"] == "url" {
			return M{"action": "accept"}
		}
		content := M{}
		schema, _ := params["requestedSchema"].(M)
		properties, _ := schema["properties"].(M)
		for name, p := range properties {
			content[name] = entry(p.(M))
		}
		return M{"action": "accept", "content": content}
	case "ping":
		return M{}
	}
	assert.Fail(t, "the server asks for something unknown", method)
	return M{}
}

// entry is a value for a field of a form.
func entry(property M) any {
	if value, ok := property["default"]; ok {
		return value
	}
	if list, ok := property["enum"].([]any); ok {
		return list[0]
	}
	if list, ok := property["oneOf"].([]any); ok {
		return list[0].(M)["const"]
	}
	switch property["type"] {
	case "boolean":
		return true
	case "integer", "number":
		return 1
	case "array":
		return []any{}
	}
	return "heed"
}
