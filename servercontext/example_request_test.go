package servercontext_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Progress is what a client sees, and a checkpoint.
func ExampleRequest_Progress() {
	source := cancellation.New(context.Background())
	h := &host{}
	req := servercontext.New(servercontext.Options{Token: source.Token(), Host: h})
	rows := []string{"a", "b", "c"}
	write := func(row string) {
		if row == "b" {
			source.Cancel(cancellation.Peer, "user pressed stop")
		}
	}
	// region progress
	importRows := func(ctx context.Context) error {
		for i, row := range rows {
			write(row)
			if err := req.Progress(ctx, float64(i+1), float64(len(rows)), row); err != nil {
				return fmt.Errorf("stopped after %d of %d rows: %w", i+1, len(rows), err)
			}
		}
		return nil
	}
	// endregion
	fmt.Println(importRows(source.Context()))
	// Output: stopped after 2 of 3 rows: cancelled by peer: "user pressed stop"
}

// Who asks, and in which way.
func ExampleRequest() {
	client, err := servercontext.NewClient([]byte(`{"name":"console","version":"2.1"}`), []byte(`{"roots":{}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req := servercontext.New(servercontext.Options{
		ID: "7", Method: "tools/call", ProtocolVersion: "2025-11-25",
		Params: []byte(`{"name":"close_stale","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","acme/tenant":"north"}}`),
		Meta:   []byte(`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","acme/tenant":"north"}`),
		Client: client, Session: servercontext.NewSession("s-1"),
		TokenInfo: &auth.TokenInfo{UserID: "ann"},
		Header:    http.Header{"X-Region": {"eu"}},
	})
	// region facts
	fmt.Println(req.Method(), req.ID(), req.ProtocolVersion(), req.Stateless())
	fmt.Println(req.ClientInfo().Name, req.HasClientCapability("roots"), req.HasClientCapability("sampling"))
	fmt.Println(req.Session().ID(), req.TokenInfo().UserID, req.Header().Get("X-Region")) // nil without HTTP or authorization
	fmt.Println(req.Meta()["acme/tenant"], req.TraceContext().Traceparent)
	// endregion
	fmt.Println(len(req.Params()) > 0, req.ClientCapabilities().Sampling == nil, client.Has("roots"))
	// Output:
	// tools/call 7 2025-11-25 false
	// console true false
	// s-1 ann eu
	// north 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
	// true true true
}

// Values live as long as the session. Requests of the stateless era over HTTP
// have none: then nothing is kept.
func ExampleSession() {
	session := servercontext.NewSession("s-1")
	req := servercontext.New(servercontext.Options{Session: session})
	// region session
	type lastQuery struct{} // a key of your own
	req.Session().Store(lastQuery{}, "status = 'open'")
	if query, ok := req.Session().Load(lastQuery{}); ok {
		fmt.Println("again:", query)
	}
	req.Session().Delete(lastQuery{})
	// endregion
	_, ok := session.Load(lastQuery{})
	fmt.Println(session.ID(), ok)
	var none *servercontext.Session
	none.Store(lastQuery{}, "x")
	fmt.Printf("%q\n", none.ID())
	// Output:
	// again: status = 'open'
	// s-1 false
	// ""
}

// What handlers log goes to the client that asked for the level.
func ExampleRequest_Logger() {
	h := &host{least: servercontext.Severity(servercontext.LevelInfo)}
	req := servercontext.New(servercontext.Options{Host: h})
	// region log
	log := req.Logger("importer")
	log.Info("file skipped", "path", "b.csv", slog.Int("rows", 12))
	if req.LogEnabled(servercontext.LevelDebug) { // where making the data costs something
		req.Log(servercontext.LevelDebug, map[string]any{"rows": 12})
	}
	// endregion
	for _, l := range h.logs {
		fmt.Println(l.level, l.logger, l.data)
	}
	// Output: info importer map[msg:file skipped path:b.csv rows:12]
}

// A handler that learns how much there is to do limits the rest by itself.
func ExampleRequest_SetTimeout() {
	req := servercontext.New(servercontext.Options{Host: &host{}})
	rows := 1200
	// region settimeout
	req.SetTimeout(time.Second + time.Duration(rows)*10*time.Millisecond)
	// endregion
	fmt.Println(req.Cancelled(), req.Token() == nil)
	// Output: false true
}

// Notifications of your own methods belong to the request, as progress does.
func ExampleRequest_Notify() {
	h := &host{}
	req := servercontext.New(servercontext.Options{Host: h})
	err := req.Notify("notifications/acme/batch", map[string]int{"batch": 4})
	req.ResourceUpdated("jobs://board/4")
	fmt.Println(err, h.asked)
	// Output: <nil> [notifications/acme/batch updated jobs://board/4]
}

// Middleware passes on other params than it was given.
func ExampleRequest_WithParams() {
	req := servercontext.New(servercontext.Options{Method: "tools/call", Params: []byte(`{"name":"old"}`)})
	fmt.Println(string(req.WithParams([]byte(`{"name":"new"}`)).Params()), string(req.Params()))
	// Output: {"name":"new"} {"name":"old"}
}

// A server lets a handler that has left its request go on under another token.
func ExampleRequest_Through() {
	source := cancellation.New(context.Background())
	req := servercontext.New(servercontext.Options{ID: "7", Method: "tools/call"})
	left := req.Through(&host{}, source.Token())
	source.Cancel(cancellation.Peer, "tasks/cancel")
	fmt.Println(left.Method(), left.Cancelled(), req.Cancelled())
	// Output: tools/call true false
}

// Only HTTP can close a response and have the client come back for the rest.
func ExampleRequest_CloseStream() {
	req := servercontext.New(servercontext.Options{})
	fmt.Println(req.CloseStream(time.Second))
	// Output: servercontext: not supported by this transport or protocol revision
}

func ExampleSeverity() {
	fmt.Println(servercontext.Severity(servercontext.LevelDebug), servercontext.Severity(servercontext.LevelEmergency), servercontext.Severity(mcp.LoggingLevel("loud")))
	// Output: 1 8 0
}

func ExampleNewContext() {
	ctx := servercontext.NewContext(context.Background(), servercontext.New(servercontext.Options{ID: "7"}))
	req, _ := servercontext.FromContext(ctx)
	fmt.Println(req.ID())
	// Output: 7
}

// A client that names no modes of elicitation can do forms.
func ExampleClient_Has() {
	client, _ := servercontext.NewClient(nil, []byte(`{"elicitation":{},"sampling":{"tools":{}}}`))
	fmt.Println(client.Has("elicitation.form"), client.Has("elicitation.url"), client.Has("sampling.tools"), client.Has("roots"))
	// Output: true false true false
}
