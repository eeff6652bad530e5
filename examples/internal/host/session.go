package host

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Session is a connected client.
type Session struct {
	*mcp.ClientSession
	t      *testing.T
	tokens atomic.Int64
	calls  sync.Map // progress token -> *Call
	dumped atomic.Bool
}

// Options are what a test may say about its client. The zero value is the newest revision and a
// client that cannot be asked anything.
type Options struct {
	// Revision is the protocol revision to ask for; "": the newest.
	Revision string
	// Elicit answers what the server asks the user; nil: the client cannot be asked.
	Elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)
}

// Start starts the program and connects to it over its pipes. When the test ends its stdin is
// closed, and it must exit well.
func Start(t *testing.T, command *exec.Cmd, o Options) *Session {
	t.Helper()
	if command.Stderr == nil {
		command.Stderr = t.Output()
	}
	return Connect(t, &mcp.CommandTransport{Command: command, TerminateDuration: Patience}, o)
}

// Connect connects to a server that runs already, or is started by the transport.
func Connect(t *testing.T, transport mcp.Transport, o Options) *Session {
	t.Helper()
	s := &Session{t: t}
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: o.Elicit,
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if call, ok := s.calls.Load(fmt.Sprint(r.Params.ProgressToken)); ok {
				call.(*Call).reports <- r.Params
			}
		},
	})
	var err error
	s.ClientSession, err = client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: o.Revision})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); !s.dumped.Load() {
			require.NoError(t, err)
		}
	})
	return s
}

// Dump ends the program that the session is with, and returns the stacks of all goroutines that
// it had. said is where its stderr goes.
func (s *Session) Dump(command *exec.Cmd, said *Log) string {
	s.t.Helper()
	s.dumped.Store(true)
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	require.NoError(s.t, command.Process.Signal(syscall.SIGQUIT))
	require.Error(s.t, Soon(s.t, ended, "the program ends"))
	stacks := said.String()
	require.Contains(s.t, stacks, "goroutine ")
	return stacks
}

// Text calls a tool and returns the text that it answers with.
func (s *Session) Text(tool string, arguments any) string {
	s.t.Helper()
	result, err := s.CallTool(s.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(s.t, err)
	return text(s.t, result)
}

// Failure calls a tool and returns the text of the error that it answers with.
func (s *Session) Failure(tool string, arguments any) string {
	s.t.Helper()
	result, err := s.CallTool(s.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(s.t, err)
	said, failed := block(s.t, result)
	require.True(s.t, failed, said)
	return said
}

func text(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	said, failed := block(t, result)
	require.False(t, failed, said)
	return said
}

func block(t *testing.T, result *mcp.CallToolResult) (said string, failed bool) {
	t.Helper()
	require.Len(t, result.Content, 1)
	block, ok := result.Content[0].(*mcp.TextContent)
	require.True(t, ok, "%T", result.Content[0])
	return block.Text, result.IsError
}

// Call is a call of a tool that runs.
type Call struct {
	t       *testing.T
	stop    context.CancelFunc
	reports chan *mcp.ProgressNotificationParams
	ended   chan struct{}
	result  *mcp.CallToolResult // with err, written before ended is closed
	err     error
}

// Begin calls a tool, asks for progress, and does not wait for the answer.
func (s *Session) Begin(tool string, arguments any) *Call {
	ctx, stop := context.WithCancel(s.t.Context())
	c := &Call{t: s.t, stop: stop, reports: make(chan *mcp.ProgressNotificationParams, 1024), ended: make(chan struct{})}
	token := fmt.Sprintf("%s-%d", tool, s.tokens.Add(1))
	s.calls.Store(token, c)
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(token)
	go func() {
		defer close(c.ended)
		defer stop()
		c.result, c.err = s.CallTool(ctx, params)
	}()
	return c
}

// Report waits for the next report of progress.
func (c *Call) Report() *mcp.ProgressNotificationParams {
	c.t.Helper()
	select {
	case report := <-c.reports:
		return report
	case <-c.ended:
		require.FailNow(c.t, "the call has ended", "%v, %v", c.result, c.err)
	case <-time.After(Patience):
		require.FailNow(c.t, "no report of progress")
	}
	return nil
}

// Stop presses Stop, and waits until the client has given the call up.
func (c *Call) Stop() {
	c.t.Helper()
	c.stop()
	Soon(c.t, c.ended, "the call is given up")
	require.ErrorIs(c.t, c.err, context.Canceled)
}

// Text waits for the answer and returns its text.
func (c *Call) Text() string {
	c.t.Helper()
	Soon(c.t, c.ended, "the call is answered")
	require.NoError(c.t, c.err)
	return text(c.t, c.result)
}

// Soon waits until a channel is closed, or has something.
func Soon[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		require.FailNow(t, "not soon: "+what)
		panic("unreachable")
	}
}
