package model_test

import (
	"context"
	"errors"
	"fmt"
	"weak"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/model"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// order is what a handler is told to do.
type order uint8

const (
	orderValue order = iota
	orderFailure
	orderForeign // return somebody else's cancellation error
	orderPanic
	orderReport
	orderAsk
)

// worker is a handler that runs. The world's mu guards what is not a channel.
type worker struct {
	tag    int
	orders chan order
	held   weak.Pointer[servercontext.Request] // what the server keeps of it

	of     *request // that it serves now; written by the world when it is settled
	asking bool     // it waits for its client
	done   bool     // it has returned
	cause  model.Cause
	fired  int // how often its token has fired
}

type input struct {
	Tag int `json:"tag"`
}

// tools are the handlers: one that returns when it is cancelled, one that does not look, and one
// that has a limit.
func (w *world) tools() {
	for name, obeys := range map[string]bool{toolObeys: true, toolStubborn: false, toolLimited: true, toolStubbornLimited: false} {
		o := &server.ToolOptions{}
		if name == toolLimited || name == toolStubbornLimited {
			o.Timeout = limit
		}
		server.MustAddTool(w.s, &mcp.Tool{Name: name}, func(ctx context.Context, req *servercontext.Request, in input) (string, error) {
			return w.work(ctx, req, in.Tag, obeys)
		}, o)
	}
}

func (w *world) work(ctx context.Context, req *servercontext.Request, tag int, obeys bool) (string, error) {
	k := &worker{tag: tag, orders: make(chan order, 8), held: weak.Make(req)}
	req.Token().OnCancel(func(e *cancellation.Error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		k.fired++
		k.cause = causeOf(e)
	})
	w.mu.Lock()
	if w.workers[tag] != nil {
		w.failLocked("the handler of tag %d runs twice", tag)
	}
	w.workers[tag] = k
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		k.done = true
		w.mu.Unlock()
	}()
	var obeyed <-chan struct{}
	if obeys {
		obeyed = ctx.Done()
	}
	for n := 1; ; n++ {
		select {
		case <-w.closing:
			return "", context.Canceled
		case <-obeyed:
			return "", context.Cause(ctx)
		case o := <-k.orders:
			switch o {
			case orderValue:
				return fmt.Sprintf("tag:%d done", tag), nil
			case orderFailure:
				return "", fmt.Errorf("tag:%d failed", tag)
			case orderForeign:
				return "", fmt.Errorf("tag:%d: %w", tag, &cancellation.Error{Origin: cancellation.Peer})
			case orderPanic:
				panic("on purpose")
			case orderReport:
				_ = req.Progress(ctx, float64(n), 0, "")
			case orderAsk:
				w.asks(ctx, req, k)
			}
		}
	}
}

func (w *world) asks(ctx context.Context, req *servercontext.Request, k *worker) {
	w.mu.Lock()
	k.asking = true
	w.mu.Unlock()
	_, err := req.CreateMessage(ctx, &mcp.CreateMessageParams{
		MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprintf("tag:%d", k.tag)}}},
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	k.asking = false
	var cancelled *cancellation.Error
	if err != nil && !errors.As(err, &cancelled) {
		w.failLocked("the question of tag %d ended with %v", k.tag, err)
	}
}

func causeOf(e *cancellation.Error) model.Cause {
	switch e.Origin {
	case cancellation.Peer:
		return model.Peer
	case cancellation.Disconnect:
		return model.Disconnect
	case cancellation.SessionEnd:
		return model.SessionEnd
	case cancellation.Timeout:
		return model.Timeout
	case cancellation.Shutdown:
		return model.Shutdown
	}
	return model.Nobody
}
