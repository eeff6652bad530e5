package transporttest_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/heedmcp/heed/transport/transporttest/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// unhurried are limits for a machine that may be busy.
var unhurried = transporttest.Limits{Start: time.Minute, Prompt: time.Minute, Rule: 10 * time.Minute}

// dial serves the fixtures over a pipe: what an author of a transport writes.
func dial(context.Context) (*transporttest.Connection, error) {
	s := server.New(&mcp.Implementation{Name: "fixture", Version: "1.0.0"}, nil)
	fixture.Register(s)
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = stdio.ServeStream(context.Background(), s, ours, ours, nil)
	}()
	return &transporttest.Connection{
		R: theirs, W: theirs,
		Life: transporttest.Life{Ended: ended, Close: func() { _ = theirs.Close(); <-ended }},
	}, nil
}

// The whole contract, as subtests of a test of the transport's own.
func ExampleRun() {
	testContract := func(t *testing.T) {
		// region run
		transporttest.Run(t, &transporttest.Target{Dial: dial}, transporttest.Options{
			Settings: transporttest.Streams, // what this transport serves
			NoSkips:  true,                  // a rule that cannot be judged is a failure
		})
		// endregion
	}
	_ = testContract // go test calls it
}

// A few rules, without package testing.
func ExampleCheck() {
	// region check
	var rules []transporttest.Rule
	for _, r := range transporttest.Rules() {
		if r.Name == "answer-suppressed-result" || r.Name == "id-kind" {
			rules = append(rules, r)
		}
	}
	outcome := transporttest.Check(context.Background(), &transporttest.Target{Dial: dial, Limits: unhurried}, transporttest.Plan{
		Settings: transporttest.StreamStateless, Rules: rules,
	})
	for _, v := range outcome.Verdicts {
		fmt.Println(v.Setting, v.Rule.Name, v.Rule.Level, v.Status)
		if v.Status != transporttest.Pass {
			fmt.Println(v.Reason, v.Evidence())
		}
	}
	// endregion
	fmt.Println("not tried:", len(outcome.Unspoken))
	// Output:
	// stdio/stateless answer-suppressed-result SHOULD pass
	// stdio/stateless id-kind MUST pass
	// not tried: 0
}

// Any program that speaks MCP can be tried; a tool that takes a few seconds takes the
// place of the fixtures.
func ExampleCommand() {
	target := &transporttest.Target{
		Dial: transporttest.Command([]string{"some-server", "--stdio"}, nil),
		Calls: map[transporttest.Need]transporttest.Call{
			transporttest.NeedSlow: {Tool: "export", Arguments: []byte(`{"format":"csv"}`)},
		},
	}
	fmt.Println(target.Calls[transporttest.NeedSlow].Tool)
	// Output: export
}

// A server over HTTP. Header is what every request carries, for instance who sends it; with Other, somebody
// else's, rules look at what a second principal gets to see.
func ExampleEndpoint() {
	// region endpoint
	open := func(context.Context) (*transporttest.Endpoint, error) {
		s := server.New(&mcp.Implementation{Name: "fixture", Version: "1.0.0"}, nil)
		fixture.Register(s)
		h := streamable.NewHandler(s, nil)
		web := httptest.NewServer(h)
		return &transporttest.Endpoint{
			URL:  web.URL,
			Life: transporttest.Life{Close: func() { _ = h.Close(); web.Close() }},
		}, nil
	}
	// endregion
	var rules []transporttest.Rule
	for _, r := range transporttest.Rules() {
		if r.Name == "disconnect-cancels" {
			rules = append(rules, r)
		}
	}
	outcome := transporttest.Check(context.Background(), &transporttest.Target{Open: open, Limits: unhurried}, transporttest.Plan{
		Settings: transporttest.HTTPStateless, Rules: rules,
	})
	for _, v := range outcome.Verdicts {
		fmt.Println(v.Setting, v.Rule.Name, v.Status, v.Reason)
	}
	// Output: http/stateless disconnect-cancels pass
}

func ExampleSetting() {
	for _, s := range transporttest.Statelesses.Each() {
		fmt.Println(s, transporttest.JSONs.Has(s))
	}
	// Output:
	// stdio/stateless false
	// http/stateless false
	// http/stateless/json true
}
