package servercontext_test

import (
	"context"
	"fmt"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/servercontext"
)

// A handler is tested without a server: give it a request and a context.
func ExampleNew() {
	// region unit
	source := cancellation.New(context.Background())
	defer source.Finish()
	req := servercontext.New(servercontext.Options{ID: "7", Method: "tools/call", Token: source.Token()})

	importRows := func(ctx context.Context, req *servercontext.Request, rows int) error {
		for i := range rows {
			if err := req.Progress(ctx, float64(i), float64(rows), ""); err != nil {
				return fmt.Errorf("stopped after %d rows: %w", i, err)
			}
			if i == 1 {
				source.Cancel(cancellation.Peer, "user pressed stop")
			}
		}
		return nil
	}
	fmt.Println(importRows(source.Context(), req, 5))
	// endregion
	fmt.Println(req.ID(), req.Cancelled())
	// Output:
	// stopped after 2 rows: cancelled by peer: "user pressed stop"
	// 7 true
}

// Code that only has the context finds the request in it.
func ExampleFromContext() {
	ctx := servercontext.NewContext(context.Background(), servercontext.New(servercontext.Options{Method: "tools/call"}))

	deepInside := func(ctx context.Context) {
		req, ok := servercontext.FromContext(ctx)
		fmt.Println(req.Method(), ok)
	}
	deepInside(ctx)

	req, ok := servercontext.FromContext(context.Background())
	fmt.Println(req.Progress(context.Background(), 1, 2, ""), ok) // a nil request is harmless
	// Output:
	// tools/call true
	// <nil> false
}

// A handler that needs something of its client says so before it begins.
func ExampleRequest_RequireClientCapability() {
	client, _ := servercontext.NewClient(nil, []byte(`{"elicitation":{}}`))
	req := servercontext.New(servercontext.Options{Client: client})
	fmt.Println(req.RequireClientCapability("elicitation.form"))
	fmt.Println(req.RequireClientCapability("elicitation.form", "sampling.tools"))
	// Output:
	// <nil>
	// client does not declare the capability sampling.tools
}
