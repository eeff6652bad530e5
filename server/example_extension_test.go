package server_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An extension has clients watch something of its own: here the stock of articles. It tells
// only of what the request may see.
func ExampleListenField() {
	s := plainServer()
	server.MustAddResource(s, &mcp.Resource{URI: "shop://bolts", Name: "bolts"},
		func(context.Context, *servercontext.Request, server.ReadIn) (string, error) { return "12", nil })
	restock, stopped := make(chan func(string), 1), make(chan struct{})
	err := s.AddExtension(&server.Extension{ID: "com.example/stock", Listen: []server.ListenField{{
		Name: "stockOf",
		Open: func(ctx context.Context, req *servercontext.Request, asked json.RawMessage, changed func(string)) (*server.Listening, error) {
			var uri string
			if err := json.Unmarshal(asked, &uri); err != nil {
				return nil, err // refuses the subscription
			}
			if !s.SeesResource(ctx, req, uri) {
				return nil, server.ResourceNotFound(uri)
			}
			restock <- changed
			return &server.Listening{
				Granted: uri,
				Tell: func(_ context.Context, key string) (string, json.RawMessage) {
					return "notifications/stock", json.RawMessage(fmt.Sprintf(`{"uri":%q,"left":12}`, key))
				},
				Stop: func() { close(stopped) },
			}, nil
		},
	}}})
	fmt.Println(err)

	ss := s.Open(context.Background(), server.SessionOptions{})
	told := tell{sent: make(chan string, 2), silent: make(chan struct{})}
	ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"stockOf":"shop://bolts"},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/stock":{}}}}}}`), told, nil, nil)
	(<-restock)("shop://bolts") // by whoever has changed it
	fmt.Println(<-told.sent)
	fmt.Println(<-told.sent)
	ss.Receive([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), nil, nil, nil)
	<-told.silent
	<-stopped
	fmt.Println("nobody listens any more")
	_ = ss.Wait(context.Background())
	// Output:
	// <nil>
	// {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"stockOf":"shop://bolts"}}}
	// {"jsonrpc":"2.0","method":"notifications/stock","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"uri":"shop://bolts","left":12}}
	// nobody listens any more
}

// tell is a reply that hands on what is sent.
type tell struct {
	sent   chan string
	silent chan struct{}
}

func (t tell) Send(msg []byte) error { t.sent <- string(msg); return nil }
func (t tell) Answer([]byte, int)    { close(t.silent) }
func (t tell) Silence()              { close(t.silent) }

// A process that was started again takes up a call that the one before it had kept. Nobody
// waits for the answer: it goes where whoever keeps the work puts it.
func ExampleServer_Revive() {
	s := plainServer()
	server.MustAddTool(s, &mcp.Tool{Name: "report"}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		return "all postings are closed", nil
	})
	kept := server.Revival{Params: json.RawMessage(`{"name":"report","arguments":{}}`), Version: server.Version20260728}

	ended := make(chan server.Outcome, 1)
	work, err := s.Revive(context.Background(), kept, server.Detachment{ID: "work-1", Ended: func(o server.Outcome) { ended <- o }})
	if err != nil {
		fmt.Println(err) // the tool is not there any more, or the server is shutting down
		return
	}
	work.Start()
	outcome := <-ended
	fmt.Println(string(outcome.Result), outcome.Err)
	// Output:
	// {"resultType":"complete","content":[{"type":"text","text":"all postings are closed"}]} <nil>
}
