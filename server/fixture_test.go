package server_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// fixture is a server with what happened to it.
type fixture struct {
	*server.Server
	t    testing.TB
	logs *logs

	mu       sync.Mutex
	events   []event
	done     []server.RequestDone
	ignoring []server.Unresponsive
	changed  chan struct{}
}

// event is something a handler went through.
type event struct {
	Tag, Name, Origin, Reason string
}

// newFixture makes a server with the fixture tools. Its observer and logger record.
func newFixture(t testing.TB, o *server.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, logs: &logs{}, changed: make(chan struct{})}
	var options server.Options
	if o != nil {
		options = *o
	}
	if options.Logger == nil {
		options.Logger = f.logs.Logger()
	}
	if options.Observer == nil {
		options.Observer = &server.Observer{
			RequestDone: func(d server.RequestDone) {
				f.note(func() { f.done = append(f.done, d) })
			},
			Unresponsive: func(u server.Unresponsive) {
				f.note(func() { f.ignoring = append(f.ignoring, u) })
			},
		}
	}
	f.Server = server.New(&mcp.Implementation{Name: "fixture", Version: "1.0.0"}, &options)
	f.addTools()
	return f
}

func (f *fixture) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fixture) add(tag, name string, err error) {
	e := event{Tag: tag, Name: name}
	if c, ok := err.(*cancellation.Error); ok {
		e.Origin, e.Reason = c.Origin.String(), c.Reason
	} else if err != nil {
		e.Reason = err.Error()
	}
	f.note(func() { f.events = append(f.events, e) })
}

// Events returns what happened under a tag so far, by name.
func (f *fixture) Events(tag string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := []string{}
	for _, e := range f.events {
		if e.Tag == tag {
			names = append(names, e.Name)
		}
	}
	return names
}

// Await waits for an event and returns it.
func (f *fixture) Await(tag, name string) (found event) {
	f.t.Helper()
	f.await(fmt.Sprintf("%q of %s", name, tag), func() bool {
		for _, e := range f.events {
			if e.Tag == tag && e.Name == name {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// Done waits until the observer was told of the request with that id.
func (f *fixture) Done(id any) (found server.RequestDone) {
	f.t.Helper()
	f.await(fmt.Sprintf("end of request %v", id), func() bool {
		for _, d := range f.done {
			if d.ID == idText(f.t, id) {
				found = d
				return true
			}
		}
		return false
	})
	return found
}

// await waits until ok, which is called with mu locked.
func (f *fixture) await(what string, ok func() bool) {
	f.t.Helper()
	late := time.NewTimer(patience())
	defer late.Stop()
	for {
		f.mu.Lock()
		done, changed := ok(), f.changed
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			f.t.Fatalf("no %s", what)
		}
	}
}

// Ignoring returns the reports of handlers that ignore their token.
func (f *fixture) Ignoring() []server.Unresponsive {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]server.Unresponsive(nil), f.ignoring...)
}

// tagged are the arguments of the fixture tools.
type tagged struct {
	Tag string `json:"tag,omitempty"`
	MS  int    `json:"ms,omitempty"`
	N   int    `json:"n,omitempty"`
}

// tool adds a tool whose handler the test brings.
func (f *fixture) tool(name string, h func(ctx context.Context, req *servercontext.Request, in tagged) (any, error), o ...*server.ToolOptions) {
	f.t.Helper()
	require.NoError(f.t, server.AddTool(f.Server, &mcp.Tool{Name: name},
		func(ctx context.Context, req *servercontext.Request, in tagged) (*mcp.CallToolResult, error) {
			v, err := h(ctx, req, in)
			if err != nil {
				return nil, err
			}
			switch v := v.(type) {
			case *mcp.CallToolResult:
				return v, nil
			case nil:
				return &mcp.CallToolResult{}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(v)}}}, nil
		}, o...))
}

func (f *fixture) addTools() {
	type echo struct {
		Text     string `json:"text,omitempty"`
		Progress int    `json:"progress,omitempty"`
	}
	server.MustAddTool(f.Server, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *servercontext.Request, in echo) (string, error) {
		for i := range in.Progress {
			if err := req.Progress(ctx, float64(i+1), float64(in.Progress), ""); err != nil {
				return "", err
			}
		}
		return in.Text, nil
	})
	f.tool("cancel_wait", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
		f.add(in.Tag, "started", nil)
		return "done", f.wait(ctx, in)
	})
	f.tool("cancel_value", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
		f.add(in.Tag, "started", nil)
		_ = f.wait(ctx, in)
		return "done", nil
	})
	f.tool("cancel_error", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
		f.add(in.Tag, "started", nil)
		_ = f.wait(ctx, in)
		return nil, errOwn
	})
	f.tool("cancel_foreign", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
		f.add(in.Tag, "started", nil)
		_ = f.wait(ctx, in)
		return nil, &cancellation.Error{Origin: cancellation.Peer, Reason: "not mine"}
	})
	f.tool("cancel_panic", func(ctx context.Context, _ *servercontext.Request, in tagged) (any, error) {
		f.add(in.Tag, "started", nil)
		_ = f.wait(ctx, in)
		panic("secret of the handler")
	})
	f.tool("cancel_ignore", func(_ context.Context, _ *servercontext.Request, in tagged) (any, error) {
		f.add(in.Tag, "started", nil)
		time.Sleep(time.Duration(in.MS) * time.Millisecond)
		f.add(in.Tag, "returned", nil)
		return "done", nil
	})
}

var errOwn = fmt.Errorf("the disk is full")

// wait blocks on the token, or until in.MS have passed. It returns the token's error.
func (f *fixture) wait(ctx context.Context, in tagged) error {
	var elapsed <-chan time.Time
	if in.MS > 0 {
		t := time.NewTimer(time.Duration(in.MS) * time.Millisecond)
		defer t.Stop()
		elapsed = t.C
	}
	select {
	case <-ctx.Done():
		err := cancellation.Checkpoint(ctx)
		f.add(in.Tag, "observed", err)
		return err
	case <-elapsed:
		f.add(in.Tag, "elapsed", nil)
		return nil
	}
}

// eachEra runs a test in a bubble for one stream of each era: with the handshake of
// 2025-11-25, and without one as of 2026-07-28.
func eachEra(t *testing.T, test func(t *testing.T, f *fixture, p *peer)) {
	t.Helper()
	eachEraWith(t, nil, peerOptions{}, test)
}

func eachEraWith(t *testing.T, o *server.Options, po peerOptions, test func(t *testing.T, f *fixture, p *peer)) {
	t.Helper()
	for era, version := range map[string]string{"handshake": server.Version20251125, "stateless": server.Version20260728} {
		t.Run(era, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(t, o)
				po := po
				po.Version = version
				test(t, f, newPeer(t, f.Server, po))
			})
		})
	}
}

// inBubbleWith runs a test in a bubble for one peer.
func inBubbleWith(t *testing.T, o *server.Options, po peerOptions, test func(t *testing.T, f *fixture, p *peer)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, o)
		test(t, f, newPeer(t, f.Server, po))
	})
}

func resourceAt(uri string) *mcp.Resource { return &mcp.Resource{Name: "r", URI: uri} }

func emptyText(_ context.Context, _ *servercontext.Request, in server.ReadIn) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: in.URI}}}, nil
}
