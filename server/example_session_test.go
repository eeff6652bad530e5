package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patient is a server with a tool that waits for its token, and says so.
func patient() (*server.Server, chan struct{}) {
	started := make(chan struct{}, 8)
	s := server.New(&mcp.Implementation{Name: "waits", Version: "1.0.0"}, &server.Options{HideServerInfo: true, Logger: quiet})
	server.MustAddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		started <- struct{}{}
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	})
	return s, started
}

// A transport's whole business with a session: open, receive, close.
func ExampleSession() {
	s, started := patient()
	ss := s.Open(context.Background(), server.SessionOptions{ID: "pipe-1"})
	p := call(ss, 1, "wait")
	<-started
	fmt.Println(ss.ID(), ss.Busy(), s.Stats().InFlight)
	ss.Close(cancellation.Disconnect, "the peer is gone") // cancels, and waits for nobody
	<-p.done
	<-ss.Done()
	fmt.Println(ss.Wait(context.Background()), ss.Busy())
	// Output:
	// pipe-1 true 1
	// silence
	// <nil> false
}

// A transport stops one request, or all of a session.
func ExampleSession_Cancel() {
	s, started := patient()
	ss := s.Open(context.Background(), server.SessionOptions{})
	one, two := call(ss, 1, "wait"), call(ss, 2, "wait")
	<-started
	<-started
	fmt.Println(ss.Cancel(`"1"`, cancellation.Peer, "stop"), ss.Cancel("1", cancellation.Peer, "stop")) // "1" is another id
	<-one.done
	fmt.Println(ss.CancelAll(cancellation.SessionEnd, "the session has ended"))
	<-two.done
	_ = ss.Wait(context.Background())
	// Output:
	// silence
	// false true
	// silence
	// 1
}

// A session of the handshake era settles on a revision.
func ExampleSession_InitializeVersion() {
	s, _ := patient()
	ss := s.Open(context.Background(), server.SessionOptions{})
	fmt.Printf("%q\n", ss.InitializeVersion())
	<-exchange(ss, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).done
	fmt.Printf("%q\n", ss.InitializeVersion())
	// Output:
	// ""
	// answered {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"tools":{"listChanged":true}},"protocolVersion":"2025-06-18","serverInfo":{"name":"waits","version":"1.0.0"}}}
	// "2025-06-18"
}

// Requests of the stateless era over HTTP share a scope that keeps no ids. The call is
// run on the goroutine that has read it.
func ExampleServer_Stateless() {
	s := server.New(&mcp.Implementation{Name: "sums", Version: "1.0.0"}, &server.Options{HideServerInfo: true, Logger: quiet})
	server.MustAddTool(s, &mcp.Tool{Name: "one"}, func(context.Context, *servercontext.Request, struct{}) (int, error) { return 1, nil },
		&server.ToolOptions{NoText: true})
	p := printer{make(chan struct{})}
	s.Stateless().Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one",`+meta+`}}`), p,
		&server.Extra{Stateless: true}, func(c *server.Call) {
			c.Run()
			fmt.Println(c.Returned(), c.Unsettled(), c.Limited())
		})
	<-p.done
	// Output:
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"structuredContent":1}}
	// true false false
}

// A transport cancels a call when the stream that would carry its answer is gone.
func ExampleCall_Cancel() {
	s, started := patient()
	ss := s.Open(context.Background(), server.SessionOptions{})
	p := printer{make(chan struct{})}
	calls := make(chan *server.Call, 1)
	ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait",`+meta+`}}`), p, nil, func(c *server.Call) {
		calls <- c
		go c.Run()
	})
	<-started
	fmt.Println((<-calls).Cancel(cancellation.Disconnect, "the response was closed"))
	<-p.done
	_ = ss.Wait(context.Background())
	// Output:
	// silence
	// true
}

// An extension brings methods for clients that know it.
func ExampleServer_AddExtension() {
	s := server.New(&mcp.Implementation{Name: "shop", Version: "1.0.0"}, &server.Options{HideServerInfo: true, Logger: quiet})
	err := s.AddExtension(&server.Extension{
		ID: "com.example/reviews",
		Methods: []server.ExtensionMethod{{
			Name: "reviews/list",
			Handler: func(context.Context, *servercontext.Request) (any, error) {
				return map[string]any{"reviews": []string{"good"}}, nil
			},
		}},
	})
	fmt.Println(err)
	ss := s.Open(context.Background(), server.SessionOptions{})
	<-exchange(ss, `{"jsonrpc":"2.0","id":1,"method":"reviews/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/reviews":{}}}}}}`).done
	<-exchange(ss, `{"jsonrpc":"2.0","id":2,"method":"reviews/list","params":{`+meta+`}}`).done
	// Output:
	// <nil>
	// answered {"jsonrpc":"2.0","id":1,"result":{"reviews":["good"],"resultType":"complete"}}
	// answered {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"client does not declare the capability extensions.com.example/reviews","data":{"requiredCapabilities":{"extensions":{"com.example/reviews":{}}}}}}
}

// Prompts, resources and templates have filters as tools have.
func ExampleServer_SetResourceFilter() {
	s := plainServer()
	server.MustAddResource(s, &mcp.Resource{URI: "jobs://salaries", Name: "salaries"},
		func(context.Context, *servercontext.Request, server.ReadIn) (string, error) { return "secret", nil })
	s.SetResourceFilter(func(_ context.Context, req *servercontext.Request, uri string, _ *mcp.Resource) bool {
		return uri != "jobs://salaries" || req.TokenInfo() != nil
	})
	s.SetPromptFilter(func(context.Context, *servercontext.Request, *mcp.Prompt) bool { return true })
	s.SetTemplateFilter(func(context.Context, *servercontext.Request, *mcp.ResourceTemplate) bool { return true })
	show(s, "resources/read", `"uri":"jobs://salaries"`)
	fmt.Println(s.FiltersResources())
	s.ResourcesChanged() // when the filter's answer changes: clients are told, as of tools and prompts
	s.ToolsChanged()
	s.PromptsChanged()
	// Output:
	// error {"code":-32602,"message":"resource not found","data":{"uri":"jobs://salaries"}}
	// true
}

// The arguments of a prompt as a map, and completion of a template's variable.
func ExampleServer_SetTemplateCompletion() {
	s := plainServer()
	s.MustAddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "jobs://{city}", Name: "city"},
		func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	err := s.SetTemplateCompletion("jobs://{city}", "city", server.CompleteFrom("Leeds", "Lyon"))
	fmt.Println(err)
	show(s, "completion/complete", `"ref":{"type":"ref/resource","uri":"jobs://{city}"},"argument":{"name":"city","value":"le"}`, "completion")
	// Output:
	// <nil>
	// completion {"values":["Leeds"],"total":1,"hasMore":false}
}

// Whatever is registered can be taken away while the server runs.
func ExampleServer_RemoveResources() {
	s := plainServer()
	s.RemoveResources("jobs://a")
	s.RemoveResourceTemplates("jobs://{id}")
	s.RemovePrompts("posting")
	s.RemoveResourceLister("rows")
	s.RemoveFileTree("file:///project/")
	fmt.Println("what is not there is ignored")
	// Output: what is not there is ignored
}

// A hook for clients of the handshake era whose roots have changed.
func ExampleServer_OnRootsChanged() {
	s := plainServer()
	s.OnRootsChanged(func(ctx context.Context, req *servercontext.Request) {
		roots, err := req.ListRoots(ctx)
		if err != nil {
			return // its token fires with the session
		}
		fmt.Println(len(roots.Roots))
	})
}

// An error that the client has answered with is not taken for one of the server's own.
func ExamplePeerError() {
	var err error = &server.PeerError{Method: "sampling/createMessage", Err: errRefused}
	var peer *server.PeerError
	fmt.Println(errors.As(err, &peer), peer.Method, errors.Is(err, errRefused))
	// Output: true sampling/createMessage true
}

// Headers that repeat arguments are declared in the schema, and compiled with it.
func ExampleServer_ParamHeaders() {
	s := plainServer()
	s.MustAddRawTool(&mcp.Tool{Name: "route", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(context.Context, *servercontext.Request, json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	for _, h := range s.ParamHeaders("route") {
		fmt.Println(h.Name, h.Path, h.Type)
	}
	fmt.Println(s.NameParam("tools/call"), s.NameParam("resources/read"))
	// Output:
	// Region [region] string
	// name uri
}

// Middleware lets work leave its request: what package tasks is built from.
func ExampleDetach() {
	s, started := patient()
	ended := make(chan server.Outcome, 1)
	detached := make(chan *server.Detached, 1)
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if req.Method() != "tools/call" {
				return next(ctx, req)
			}
			work := server.Detach(ctx, req, next, server.Detachment{
				ID: "work-1", Timeout: time.Minute, Ended: func(o server.Outcome) { ended <- o },
			})
			work.Start()
			<-started
			if err := work.Leave(nil); err != nil {
				return nil, err
			}
			detached <- work
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it goes on as work-1"}}}, nil
		}
	})
	ss := s.Open(context.Background(), server.SessionOptions{})
	<-call(ss, 1, "wait").done
	work := <-detached
	fmt.Println(work.Cancel(cancellation.Peer, "not needed any more"))
	fmt.Println((<-ended).Err)
	_ = ss.Wait(context.Background())
	// Output:
	// answered {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"it goes on as work-1"}]}}
	// true
	// cancelled by peer: "not needed any more"
}

var errRefused = &sdkrpc.Error{Code: -1, Message: "the user has refused"}
