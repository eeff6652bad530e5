package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what should come at once.
const patience = time.Minute

// client is the other end of a stream. It keeps what it read.
type client struct {
	t testing.TB
	w io.WriteCloser

	mu      sync.Mutex
	lines   []string      // not taken yet
	ended   error         // why reading ended
	changed chan struct{} // closed and replaced with every change
}

func newClient(t testing.TB, w io.WriteCloser) *client {
	return &client{t: t, w: w, changed: make(chan struct{})}
}

// read reads until the stream ends.
func (c *client) read(r io.Reader) {
	b := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := b.ReadString('\n')
		c.mu.Lock()
		if line != "" {
			c.lines = append(c.lines, line)
		}
		c.ended = err
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// message is what the server wrote.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result *result         `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	raw string
}

type result struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	IsError bool `json:"isError"`
}

func (m message) text() string {
	if m.Result == nil || len(m.Result.Content) == 0 {
		return ""
	}
	return m.Result.Content[0].Text
}

// parse fails the test unless line is one whole message.
func (c *client) parse(line string) message {
	c.t.Helper()
	require.True(c.t, strings.HasSuffix(line, "\n"), "a partial line: %.200q", line)
	m := message{raw: line}
	if strings.HasPrefix(line, "[") {
		require.True(c.t, json.Valid([]byte(line)), "no message: %.200q", line)
		return m
	}
	require.NoError(c.t, json.Unmarshal([]byte(line), &m), "no message: %.200q", line)
	return m
}

// write sends bytes as they are.
func (c *client) write(text string) {
	c.t.Helper()
	_, err := io.WriteString(c.w, text)
	require.NoError(c.t, err)
}

func (c *client) line(format string, args ...any) {
	c.t.Helper()
	c.write(fmt.Sprintf(format, args...) + "\n")
}

const initializeLine = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

func (c *client) initialize() { c.t.Helper(); c.initializeVersion("2025-11-25") }

func (c *client) initializeVersion(version string) {
	c.t.Helper()
	c.line(initializeLine, version)
	m := c.next()
	require.NotNil(c.t, m.Result, m.raw)
	c.line(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func callLine(id any, tool string, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":{%s},"_meta":{"progressToken":%v}}}`, id, tool, arguments, id)
}

func cancelLine(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%v,"reason":"r"}}`, id)
}

func (c *client) call(id any, tool string, arguments string) {
	c.t.Helper()
	c.line("%s", callLine(id, tool, arguments))
}

func (c *client) cancel(id any) { c.t.Helper(); c.line("%s", cancelLine(id)) }

// take returns the next line, or io.EOF after the last.
func (c *client) take() (string, error) {
	c.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		if len(c.lines) > 0 {
			line := c.lines[0]
			c.lines = c.lines[1:]
			c.mu.Unlock()
			return line, nil
		}
		ended := c.ended
		c.mu.Unlock()
		if ended != nil {
			return "", io.EOF
		}
		select {
		case <-changed:
		case <-timeout.C:
			require.FailNow(c.t, "the server wrote nothing")
		}
	}
}

func (c *client) next() message {
	c.t.Helper()
	line, err := c.take()
	require.NoError(c.t, err)
	return c.parse(line)
}

// answer returns the next message, which must be the answer to id.
func (c *client) answer(id any) message {
	c.t.Helper()
	m := c.next()
	require.Equal(c.t, fmt.Sprint(id), string(m.ID), m.raw)
	return m
}

func (c *client) echo(id any) {
	c.t.Helper()
	c.call(id, "echo", `"text":"hello"`)
	require.Equal(c.t, "hello", c.answer(id).text())
}

func (c *client) fault(code int) {
	c.t.Helper()
	m := c.next()
	require.NotNil(c.t, m.Error, m.raw)
	assert.Equal(c.t, code, m.Error.Code, m.raw)
	assert.Equal(c.t, "null", rawID(m), m.raw)
}

func rawID(m message) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(m.raw), &fields)
	return string(fields["id"])
}

// rest returns all messages until the stream ends.
func (c *client) rest() []message {
	c.t.Helper()
	var all []message
	for {
		line, err := c.take()
		if err != nil {
			return all
		}
		all = append(all, c.parse(line))
	}
}

// quiet fails the test when the server has written anything. It is for bubbles.
func (c *client) quiet() {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(c.t, c.lines)
}

// served is a client in a bubble, with the service at the other end.
type served struct {
	*client
	*fixture
	stop     context.CancelFunc
	signals  chan os.Signal
	returned chan error
}

// serve serves f over pipes in memory. The test ends the service, or it is ended
// for it.
func serve(t *testing.T, f *fixture, o *stdio.Options) *served {
	t.Helper()
	r, w := io.Pipe()
	c := serveTo(t, f, o, w)
	go c.read(r)
	return c
}

// serveTo is serve with w to write to, from which nobody reads yet.
func serveTo(t *testing.T, f *fixture, o *stdio.Options, w io.WriteCloser) *served {
	t.Helper()
	in, end := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	c := &served{client: newClient(t, end), fixture: f, stop: stop, signals: make(chan os.Signal, 2), returned: make(chan error, 1)}
	go func() {
		err := stdio.ServeSignals(ctx, f.Server, in, w, o, c.signals)
		in.Close()
		w.Close()
		c.returned <- err
	}()
	t.Cleanup(func() {
		stop()
		end.Close()
		close(f.release)
	})
	return c
}

// result waits for the service's end.
func (s *served) result() error {
	s.t.Helper()
	select {
	case err := <-s.returned:
		return err
	case <-time.After(time.Hour): // of a bubble
		require.FailNow(s.t, "the service does not end")
		return nil
	}
}

// end closes the input and expects a clean end.
func (s *served) end() {
	s.t.Helper()
	require.NoError(s.t, s.w.Close())
	require.NoError(s.t, s.result())
}
