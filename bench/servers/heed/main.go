// Contract server on Heed.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"contract"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func newServer(f contract.Flags) *server.Server {
	o := &server.Options{}
	if f.Max {
		o.MaxInFlight = -1
	}
	s := server.New(&mcp.Implementation{Name: "bench-heed", Version: "1.0.0"}, o)
	server.MustAddTool(s, &mcp.Tool{Name: "echo", Description: "echo text"},
		func(ctx context.Context, req *servercontext.Request, in contract.EchoArgs) (string, error) {
			return in.Text, nil
		})
	server.MustAddTool(s, &mcp.Tool{Name: "wait", Description: "wait until cancelled or ms elapsed"},
		func(ctx context.Context, req *servercontext.Request, in contract.WaitArgs) (string, error) {
			if contract.Wait(ctx, in.Ms, in.Tag) {
				return "", ctx.Err()
			}
			return "done", nil
		})
	server.MustAddTool(s, &mcp.Tool{Name: "progress", Description: "send n progress notifications"},
		func(ctx context.Context, req *servercontext.Request, in contract.ProgressArgs) (string, error) {
			for i := 1; i <= in.N; i++ {
				if err := req.Progress(ctx, float64(i), float64(in.N), ""); err != nil {
					return "", err
				}
			}
			return "done", nil
		})
	server.MustAddTool(s, &mcp.Tool{Name: "sample", Description: "nested sampling"},
		func(ctx context.Context, req *servercontext.Request, in contract.SampleArgs) (string, error) {
			contract.Log('S', in.Tag)
			res, err := req.CreateMessage(ctx, &mcp.CreateMessageParams{
				Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}},
				MaxTokens: 10,
			})
			contract.Sampled(ctx, in.Tag, err)
			if err != nil {
				return "", err
			}
			return res.Model, nil
		})
	server.MustAddTool(s, &mcp.Tool{Name: "hooks", Description: "hooks on the token"},
		func(ctx context.Context, req *servercontext.Request, in contract.HooksArgs) (string, error) {
			contract.Hooks(ctx, in.N, in.Tag, func(hook func()) {
				req.Token().OnCancel(func(*cancellation.Error) { hook() })
			})
			return "", ctx.Err()
		})
	server.MustAddTool(s, &mcp.Tool{Name: "touch", Description: "change the list of tools"},
		func(ctx context.Context, req *servercontext.Request, in contract.NoArgs) (string, error) {
			return "done", server.AddTool(s, &mcp.Tool{Name: "touched", Description: "one more"},
				func(ctx context.Context, req *servercontext.Request, in contract.EchoArgs) (string, error) {
					return in.Text, nil
				})
		})
	for i := range f.Tools {
		server.MustAddTool(s, &mcp.Tool{Name: fmt.Sprintf("tool-%d", i), Description: "one of many"},
			func(ctx context.Context, req *servercontext.Request, in contract.EchoArgs) (string, error) {
				return in.Text, nil
			})
	}
	for i := range f.Templates {
		s.MustAddResourceTemplate(&mcp.ResourceTemplate{Name: fmt.Sprintf("t%d", i), URITemplate: fmt.Sprintf("bench://t%d/{id}", i)},
			func(ctx context.Context, req *servercontext.Request, in server.ReadIn) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: in.URI, Text: in.Variables.Get("id")}}}, nil
			})
	}
	return s
}

// kept is a server.Reply that keeps the answer.
type kept struct{ answer []byte }

func (*kept) Send([]byte) error          { return nil }
func (*kept) Silence()                   {}
func (k *kept) Answer(msg []byte, _ int) { k.answer = append(k.answer[:0], msg...) }

// core answers in memory: from the bytes of a request to those of its answer.
func core(s *server.Server, f contract.Flags) {
	ss := s.Open(context.Background(), server.SessionOptions{Version: server.Version20251125})
	k := &kept{}
	contract.Core(f.Core, func() []byte {
		ss.Receive([]byte(contract.ListTools), k, nil, func(c *server.Call) { c.Run() })
		return k.answer
	})
}

func main() {
	f := contract.Parse()
	s := newServer(f)
	if f.Core > 0 {
		core(s, f)
		return
	}
	if f.HTTP == "" {
		if err := stdio.Serve(context.Background(), s, nil); err != nil {
			log.Fatal(err)
		}
		return
	}
	o := &streamable.Options{}
	if f.JSON {
		o.Response = streamable.JSON
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", streamable.NewHandler(s, o))
	log.Fatal(contract.Listen(f, mux))
}
