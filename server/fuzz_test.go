package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// fuzzServer has one of everything that a message can reach. Nothing in it waits for long.
func fuzzServer() *server.Server {
	s := server.New(&mcp.Implementation{Name: "fuzz", Version: "1"}, &server.Options{
		Logger:        slog.New(slog.NewTextHandler(io.Discard, nil)),
		ClientTimeout: 5 * time.Millisecond, ParkTimeout: 5 * time.Millisecond, MaxSubscriptions: 4,
		PageSize: 2, StateKeys: [][]byte{make([]byte, 32)},
	})
	server.MustAddTool(s, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *servercontext.Request, in echoIn) (string, error) {
		req.Log("info", in)
		return in.Text, req.Progress(ctx, 1, 2, in.Text)
	})
	server.MustAddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *servercontext.Request, in echoIn) (string, error) {
		if _, err := req.Elicit(ctx, &mcp.ElicitParams{Message: in.Text}); err != nil {
			return "", err
		}
		return in.Text, nil
	})
	server.MustAddTool(s, &mcp.Tool{Name: "returning"}, func(_ context.Context, req *servercontext.Request, in echoIn) (*mcp.CallToolResult, error) {
		if req.RequestState() != "" || len(req.InputResponses()) > 0 {
			return &mcp.CallToolResult{}, nil
		}
		return &mcp.CallToolResult{RequestState: in.Text + "x"}, nil
	})
	s.MustAddResource(resourceAt("test://a"), emptyText)
	s.MustAddPrompt(&mcp.Prompt{Name: "p", Arguments: []*mcp.PromptArgument{{Name: "a"}}},
		func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	server.MustAddMethod(s, "acme/x", func(_ context.Context, _ *servercontext.Request, in json.RawMessage) (M, error) {
		return M{"got": len(in)}, nil
	})
	server.MustAddMethod(s, "notifications/acme", func(context.Context, *servercontext.Request, json.RawMessage) (any, error) { return nil, nil })
	return s
}

// fuzzReply checks all that a server may write, and that a message is settled once.
type fuzzReply struct {
	t    testing.TB
	line []byte

	mu      sync.Mutex
	settled int
}

func (r *fuzzReply) Send(msg []byte) error {
	r.checkLine(msg)
	var m message
	if json.Unmarshal(msg, &m) != nil || m.Method == "" {
		r.t.Errorf("%q: sent %q", r.line, msg)
	}
	return nil
}

func (r *fuzzReply) Answer(msg []byte, code int) {
	r.checkLine(msg)
	if msg[0] == '[' {
		var all []json.RawMessage
		if json.Unmarshal(msg, &all) != nil || len(all) == 0 {
			r.t.Errorf("%q: answered %q", r.line, msg)
		}
		for _, one := range all {
			r.checkAnswer(one, -1)
		}
	} else {
		r.checkAnswer(msg, code)
	}
	r.settle()
}

func (r *fuzzReply) checkAnswer(msg []byte, code int) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(msg, &m); err != nil {
		r.t.Errorf("%q: answered %q", r.line, msg)
		return
	}
	_, result := m["result"]
	_, fault := m["error"]
	switch id := m["id"]; {
	case string(m["jsonrpc"]) != `"2.0"` || result == fault || len(m) != 3:
		r.t.Errorf("%q: answered %q", r.line, msg)
	case string(id) != "null" && !idIsIn(r.line, id):
		r.t.Errorf("%q: answered with an id of its own: %q", r.line, msg)
	case code != -1 && fault != (code != 0):
		r.t.Errorf("%q: code %d for %q", r.line, code, msg)
	case string(id) == "null" && result:
		r.t.Errorf("%q: a result without an id: %q", r.line, msg)
	}
	if fault {
		var e struct{ Code *int }
		if json.Unmarshal(m["error"], &e) != nil || e.Code == nil || *e.Code == 0 {
			r.t.Errorf("%q: answered with no code: %q", r.line, msg)
		}
	}
}

// idIsIn tells whether an id, a JSON string or number, comes from a line: as it is,
// or as a string that was written with escapes.
func idIsIn(line, id []byte) bool {
	return bytes.Contains(line, id) || id[0] == '"' && bytes.Contains(line, []byte(`\`))
}

func (r *fuzzReply) checkLine(msg []byte) {
	if !json.Valid(msg) || bytes.ContainsAny(msg, "\r\n") {
		r.t.Errorf("%q: wrote %q", r.line, msg)
	}
}

func (r *fuzzReply) Silence() { r.settle() }

func (r *fuzzReply) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled++; r.settled > 1 {
		r.t.Errorf("%q: settled twice", r.line)
	}
}

// receiveAll gives a session lines and ends it. All handlers return, whatever they were sent.
func receiveAll(t testing.TB, ss *server.Session, lines [][]byte) {
	for _, line := range lines {
		ss.Receive(line, &fuzzReply{t: t, line: line}, nil, nil)
	}
	if ss.Done() != nil {
		ss.Close(cancellation.Disconnect, "")
	} else {
		ss.CancelAll(cancellation.Disconnect, "")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	require.NoError(t, ss.Wait(ctx), "%q", lines)
}

// FuzzReceive sends any lines: nothing panics, every answer is valid and has the id of its
// request, and nothing is settled twice.
func FuzzReceive(f *testing.F) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":"t"}`
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"},"_meta":{"progressToken":1}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"text":"a"}}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"ask","arguments":{"text":"a"},` + meta + `}}`,
		`{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"name":"returning","arguments":{"text":"a"},"requestState":"x","inputResponses":{"a":{}},` + meta + `}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]},1,[]]`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"bjplY2hv",` + meta + `}}`,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1.0,"method":"resources/read","params":{"uri":"test://a"}}` + "\n" + `{"jsonrpc":"2.0","id":-0,"method":"prompts/get","params":{"name":"p","arguments":{"a":"b"}}}`,
		`{"jsonrpc":"2.0","id":"","method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}}`,
		`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`,
		`{"jsonrpc":"2.0","id":9,"method":"resources/subscribe","params":{"uri":"test://a"}}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"debug"}}`,
		"", "\n", "{", `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, "\xff", `{"jsonrpc":"2.0","id":1,"method":"acme/x","params":{"a":[[[[]]]]}}`,
	} {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(3))
	}
	s := fuzzServer()
	versions := append(server.Versions(), "")
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		version := versions[int(which)%len(versions)]
		ss := s.Open(context.Background(), server.SessionOptions{
			Version: version, Unordered: which&16 != 0, NoStateless: which&32 != 0,
			Send: func(msg []byte) error { (&fuzzReply{t: t}).checkLine(msg); return nil },
		})
		lines := bytes.Split(bytes.Clone(text), []byte("\n"))
		receiveAll(t, ss, lines)
		for _, line := range lines {
			reply := &fuzzReply{t: t, line: line}
			s.Stateless().Receive(line, reply, &server.Extra{Stateless: true}, func(c *server.Call) {
				c.Cancel(cancellation.Disconnect, "the stream is closed")
				c.Run()
			})
		}
		if n := s.Stats().InFlight; n != 0 {
			t.Fatalf("%d requests are left: %q", n, text)
		}
	})
}

// FuzzCancelledParams sends cancels with any params: none is answered, and only the
// one id that is exactly that of the request cancels it.
func FuzzCancelledParams(f *testing.F) {
	for _, seed := range []string{`{"requestId":1}`, `{"requestId":"1"}`, `{"requestId":1.0,"reason":"x"}`, `{"requestId":1,"reason":7}`, `{"requestId":null}`, `[]`, `"x"`, `{"requestId":1,"requestId":2}`, `{"requestId":1,"reason":"\ud800\u0000"}`, `{`} {
		f.Add(seed)
	}
	s := fuzzServer()
	server.MustAddTool(s, &mcp.Tool{Name: "hold"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	}, &server.ToolOptions{Timeout: -1})
	f.Fuzz(func(t *testing.T, params string) {
		ss := s.Open(context.Background(), server.SessionOptions{Version: server.Version20251125})
		var call *server.Call
		request := &fuzzReply{t: t, line: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold"}}`)}
		ss.Receive(request.line, request, nil, func(c *server.Call) { call = c })
		line := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + params + `}`)
		answered := false
		ss.Receive(line, answerFunc(func(msg []byte, _ int) {
			answered = true
			var m message
			if json.Unmarshal(msg, &m) != nil || m.Error == nil {
				t.Errorf("%q: answered %q", params, msg)
			}
		}), nil, nil)
		var p struct {
			RequestID *json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal([]byte(params), &p) == nil && json.Valid(line) && !hidden(line) && answered {
			t.Errorf("%q: a well-formed notification was answered", params)
		}
		cancelled := !call.Unsettled()
		if cancelled && !strings.Contains(params, "requestId") && !strings.Contains(params, `\u`) {
			t.Errorf("%q: cancelled a request that it does not name", params)
		}
		if params == `{"requestId":1}` && !cancelled {
			t.Errorf("%q: not cancelled", params)
		}
		go call.Run()
		receiveAll(t, ss, nil)
	})
}

// hidden tells whether a line holds what encoding/json tolerates and the server
// does not: invalid UTF-8, members of the envelope that appear in the fuzzed part.
func hidden(line []byte) bool {
	return strings.ToValidUTF8(string(line), "") != string(line) || bytes.Count(line, []byte(`"`)) > 0 && bytes.Contains(line[len(`{"jsonrpc":"2.0",`):], []byte(`"jsonrpc"`)) ||
		bytes.Contains(line, []byte(`"id"`)) || bytes.Contains(line, []byte(`"error"`)) || bytes.Contains(line, []byte(`"result"`)) || bytes.Count(line, []byte(`"method"`)) > 1 || bytes.Contains(line, []byte(`\u`))
}

// FuzzRequestState sends retries with any state: only the sealed one, unchanged, is taken.
func FuzzRequestState(f *testing.F) {
	s := fuzzServer()
	const head = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"returning","arguments":{"text":"a"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	good := "" // another one in every process that fuzzes
	s.Stateless().Receive([]byte(head+`}}`), answerFunc(func(msg []byte, _ int) {
		var m message
		require.NoError(f, json.Unmarshal(msg, &m))
		good, _ = m.State(f)
	}), &server.Extra{Stateless: true}, run)
	require.NotEmpty(f, good)
	f.Add("", uint16(0), uint16(0), "")
	f.Add("", uint16(len(good)), uint16(0), "\n")
	f.Add("", uint16(3), uint16(0), "\r")
	f.Add("", uint16(7), uint16(1), "A")
	f.Add("", uint16(len(good)-1), uint16(1), "")
	f.Add("", uint16(len(good)), uint16(0), "=")
	f.Add("AAAA", uint16(0), uint16(0), "")
	f.Add("null", uint16(0), uint16(9), "x")
	f.Fuzz(func(t *testing.T, other string, at, cut uint16, insert string) {
		state := other
		if state == "" { // the good one, changed
			from := min(int(at), len(good))
			state = good[:from] + insert + good[min(from+int(cut), len(good)):]
		}
		quoted, err := json.Marshal(state)
		require.NoError(t, err)
		code, answers := 0, 0
		s.Stateless().Receive([]byte(head+`,"requestState":`+string(quoted)+`}}`), answerFunc(func(_ []byte, c int) { code = c; answers++ }), &server.Extra{Stateless: true}, run)
		require.Equal(t, 1, answers)
		if (code == 0) != (state == good) {
			t.Errorf("state %q: code %d", state, code)
		}
	})
}

// FuzzCursor lists with any cursor: an answer, or -32602.
func FuzzCursor(f *testing.F) {
	s := fuzzServer()
	for _, seed := range []string{"", "bjplY2hv", "bjo", "x", "bjplY2hv=", "bjplY2hv\n", "OjA", "////"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		quoted, err := json.Marshal(cursor)
		require.NoError(t, err)
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			ss := s.Open(context.Background(), server.SessionOptions{Version: server.Version20251125})
			line := []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"cursor":` + string(quoted) + `}}`)
			ss.Receive(line, answerFunc(func(msg []byte, code int) {
				if code != 0 && code != -32602 || !json.Valid(msg) {
					t.Errorf("%q: %s", cursor, msg)
				}
			}), nil, run)
			ss.Close(cancellation.Disconnect, "")
		}
	})
}
