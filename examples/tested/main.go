// Command tested has a tool with a commit that must not be split: each customer is charged and
// gets a receipt, both or neither. Its tests show how to hold such a tool to that: they cancel it
// at every point at which it can be cancelled, one run each.
//
//	go test -v ./examples/tested
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// books are what must always be in balance.
type books struct {
	mu       sync.Mutex
	charged  map[string]int // customer -> how often
	receipts map[string]int
}

func newBooks() *books {
	return &books{charged: map[string]int{}, receipts: map[string]int{}}
}

// region job
type chargeIn struct {
	Customers []string `json:"customers" jsonschema:"minItems=1" jsonschema_description:"whom to charge"`
}

func (b *books) charge(ctx context.Context, req *servercontext.Request, in chargeIn) (string, error) {
	for i, customer := range in.Customers {
		if err := req.Progress(ctx, float64(i), float64(len(in.Customers)), customer); err != nil {
			return "", err
		}
		if b.isCharged(customer) {
			continue // by an earlier call, which was cancelled after that
		}
		err := cancellation.Shield(ctx, func(ctx context.Context) error {
			b.add(b.charged, customer)
			if err := cancellation.Checkpoint(ctx); err != nil {
				return err // never: a cancel waits until the shield is left
			}
			b.add(b.receipts, customer)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("charged %d", len(in.Customers)), nil
}

// endregion

func (b *books) add(where map[string]int, customer string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	where[customer]++
}

func (b *books) isCharged(customer string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.charged[customer] > 0
}

func main() {
	s := server.New(&mcp.Implementation{Name: "tested", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "charge", Description: "Charges customers, each once."}, newBooks().charge)
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Fatal(err)
	}
}
