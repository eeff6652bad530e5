package streamable_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// M is a JSON object of a test.
type M = map[string]any

// fixture is a server whose tools tell the test what becomes of them.
type fixture struct {
	t       testing.TB
	s       *server.Server
	started chan string                         // tags of handlers that have begun
	ended   map[string]chan *cancellation.Error // by tag: what a handler was cancelled by
	release chan struct{}                       // closed: handlers that ignore their token return
	done    chan server.RequestDone
}

type tagged struct {
	Tag string `json:"tag"`
}

var tags = []string{"a", "b", "c"}

// newFixture makes a server with these tools:
//
//	echo    {text, progress}  answers with the text after so many progress reports
//	wait    {tag}             waits for its token and returns its error
//	ignore  {tag}             returns a text when the test releases it
//	panic   {tag}             waits for its token and panics
//	value   {tag}             waits for its token and returns a text
func newFixture(t testing.TB, o *server.Options) *fixture {
	t.Helper()
	var options server.Options
	if o != nil {
		options = *o
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	f := &fixture{
		t:       t,
		started: make(chan string, 1024),
		ended:   map[string]chan *cancellation.Error{},
		release: make(chan struct{}),
		done:    make(chan server.RequestDone, 4096),
	}
	for _, tag := range tags {
		f.ended[tag] = make(chan *cancellation.Error, 1024)
	}
	if options.Observer == nil {
		options.Observer = &server.Observer{RequestDone: func(d server.RequestDone) { f.done <- d }}
	}
	f.s = server.New(&mcp.Implementation{Name: "fixture", Version: "1"}, &options)
	server.MustAddTool(f.s, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *servercontext.Request, in struct {
		Text     string `json:"text"`
		Progress int    `json:"progress,omitempty"`
	}) (string, error) {
		for i := range in.Progress {
			if err := req.Progress(ctx, float64(i+1), float64(in.Progress), ""); err != nil {
				return "", err
			}
		}
		return in.Text, nil
	})
	f.waiting("wait", func(err error) (string, error) { return "", err })
	f.waiting("value", func(error) (string, error) { return "a value", nil })
	f.waiting("panic", func(error) (string, error) { panic("on purpose") })
	f.waiting("fail", func(error) (string, error) { return "", errors.New("a failure of its own") })
	server.MustAddTool(f.s, &mcp.Tool{Name: "ignore"}, func(ctx context.Context, req *servercontext.Request, in tagged) (string, error) {
		f.started <- in.Tag
		stop := req.Token().OnCancel(func(e *cancellation.Error) { f.ended[in.Tag] <- e })
		defer stop()
		<-f.release
		return "returned", nil
	})
	return f
}

func (f *fixture) waiting(name string, then func(error) (string, error)) {
	server.MustAddTool(f.s, &mcp.Tool{Name: name}, func(ctx context.Context, req *servercontext.Request, in tagged) (string, error) {
		f.started <- in.Tag
		<-req.Token().Done()
		err := req.Token().Err()
		var cancelled *cancellation.Error
		if errors.As(err, &cancelled) {
			f.ended[in.Tag] <- cancelled
		}
		return then(err)
	})
}

// next waits for the cancel of a handler with that tag.
func (f *fixture) next(tag string) *cancellation.Error {
	f.t.Helper()
	select {
	case e := <-f.ended[tag]:
		return e
	case <-time.After(10 * time.Minute):
		require.FailNow(f.t, "the handler was not cancelled", tag)
		return nil
	}
}

// begun waits until a handler with that tag has begun.
func (f *fixture) begun(tag string) {
	f.t.Helper()
	select {
	case got := <-f.started:
		require.Equal(f.t, tag, got)
	case <-time.After(10 * time.Minute):
		require.FailNow(f.t, "the handler did not begin", tag)
	}
}

// untouched checks that no handler with that tag was cancelled so far.
func (f *fixture) untouched(tag string) {
	f.t.Helper()
	select {
	case e := <-f.ended[tag]:
		require.FailNow(f.t, "the handler was cancelled", "%s: %v", tag, e)
	default:
	}
}
