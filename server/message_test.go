package server_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// reply is a server.Reply that records and checks the contract of that interface.
type reply struct {
	peer *peer
	id   string // "" for what is no request
	line string // what was sent

	mu      sync.Mutex
	sending bool // a Send or Answer is running
	silence int
	answers []*message
	broken  []string     // breaches of the contract
	fail    error        // what Send returns
	onSend  func([]byte) // called by Send, without locks
}

func (r *reply) Send(msg []byte) error {
	r.enter("Send", msg)
	defer r.leave()
	r.mu.Lock()
	fail, onSend := r.fail, r.onSend
	r.mu.Unlock()
	if fail != nil {
		return fail
	}
	r.peer.record(r.id, msg)
	if onSend != nil {
		onSend(msg)
	}
	return nil
}

func (r *reply) Answer(msg []byte, code int) {
	r.enter("Answer", msg)
	defer r.leave()
	m := r.peer.record(r.id, msg)
	if (m.Error == nil) != (code == 0) || m.Error != nil && m.Error.Code != code {
		if len(msg) > 0 && msg[0] != '[' {
			r.breach("code does not fit the message")
		}
	}
	r.mu.Lock()
	r.answers = append(r.answers, m)
	r.mu.Unlock()
	r.changed()
}

func (r *reply) Silence() {
	r.mu.Lock()
	r.silence++
	r.mu.Unlock()
	r.changed()
}

func (r *reply) changed() {
	r.peer.mu.Lock()
	r.peer.changedLocked()
	r.peer.mu.Unlock()
}

func (r *reply) enter(what string, msg []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sending {
		r.broken = append(r.broken, what+" while another was running")
	}
	if len(r.answers) > 0 || r.silence > 0 {
		r.broken = append(r.broken, what+" after the end: "+string(msg))
	}
	if bytes.ContainsAny(msg, "\r\n") {
		r.broken = append(r.broken, what+" of more than one line")
	}
	r.sending = true
}

func (r *reply) leave() {
	r.mu.Lock()
	r.sending = false
	r.mu.Unlock()
}

func (r *reply) breach(what string) {
	r.mu.Lock()
	r.broken = append(r.broken, what)
	r.mu.Unlock()
}

func (r *reply) silenced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silence > 0
}

func (r *reply) answer() *message {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) == 0 {
		return nil
	}
	return r.answers[0]
}

// check reports breaches of the contract, at the end of a test.
func (r *reply) check(t testing.TB) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.broken {
		t.Errorf("reply of request %s: %s", r.id, b)
	}
	if n := len(r.answers) + r.silence; n != 1 {
		t.Errorf("request %s was settled %d times: %s", r.id, n, r.line)
	}
}

// answerFunc is a server.Reply that only takes the answer.
type answerFunc func(msg []byte, code int)

func (f answerFunc) Send([]byte) error           { return nil }
func (f answerFunc) Answer(msg []byte, code int) { f(msg, code) }
func (f answerFunc) Silence()                    {}

// Text is the first text of a tool's result.
func (m *message) Text() string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(m.Result, &r) != nil || len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// IsError tells whether a tool's result, or the response, reports an error.
func (m *message) IsError() bool {
	var r struct {
		IsError bool `json:"isError"`
	}
	return m.Error != nil || json.Unmarshal(m.Result, &r) == nil && r.IsError
}

// Code is the error code of a response, 0 for a result.
func (m *message) Code() int {
	if m.Error == nil {
		return 0
	}
	return m.Error.Code
}

// Param returns a member of the params, decoded; nil without it.
func (m *message) Param(name string) any {
	var params M
	if json.Unmarshal(m.Params, &params) != nil {
		return nil
	}
	return params[name]
}

func (m *message) object(t testing.TB, raw []byte) M {
	t.Helper()
	var v M
	require.NoError(t, json.Unmarshal(raw, &v), "%s", m.Raw)
	return v
}

// State is the requestState of an input_required result, with the requests in it by key.
func (m *message) State(t testing.TB) (state string, requests map[string]inputRequest) {
	t.Helper()
	var r struct {
		ResultType    string                  `json:"resultType"`
		RequestState  string                  `json:"requestState"`
		InputRequests map[string]inputRequest `json:"inputRequests"`
	}
	require.NoError(t, json.Unmarshal(m.Result, &r), "%s", m.Raw)
	require.Equal(t, "input_required", r.ResultType, "%s", m.Raw)
	return r.RequestState, r.InputRequests
}

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func encode(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func idText(t testing.TB, id any) string {
	t.Helper()
	return encode(t, id)
}

// inBubble tells whether the caller runs inside synctest, whose clock starts in 2000.
func inBubble() bool { return time.Now().Year() < 2010 }

// patience is how long a test waits for what must happen. In a bubble the time is
// free, and long enough for every limit of the server to pass first.
func patience() time.Duration {
	if inBubble() {
		return 24 * time.Hour
	}
	return time.Minute
}

// elicitation and the like as a client declares and answers them.
var (
	allCaps = M{
		"elicitation": M{"form": M{}, "url": M{}},
		"sampling":    M{"tools": M{}},
		"roots":       M{},
	}
	accepted = M{"action": "accept", "content": M{}}
	sampled  = M{"role": "assistant", "model": "m", "content": M{"type": "text", "text": "hi"}}
	form     = &mcp.ElicitParams{Message: "go on?", RequestedSchema: M{"type": "object", "properties": M{}}}
)

// as is x with another principal.
func as(user string, x *server.Extra) *server.Extra {
	y := server.Extra{}
	if x != nil {
		y = *x
	}
	y.TokenInfo = nil
	if user != "" {
		y.TokenInfo = &auth.TokenInfo{UserID: user}
	}
	return &y
}
