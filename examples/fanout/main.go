// Command fanout does many things at once: its tool fetches pages, a few at a time. Whether one
// of them fails or the call is cancelled, the others stop as well, and the tool returns only when
// all of them have.
//
//	go run ./examples/fanout
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"
)

const (
	atOnce   = 4
	maxBytes = 1 << 20 // of a page
)

type measureIn struct {
	URLs []string `json:"urls" jsonschema:"minItems=1,maxItems=1000" jsonschema_description:"the pages to measure"`
}

type measured struct {
	Bytes map[string]int64 `json:"bytes" jsonschema_description:"the size of each page"`
}

// region fanout
func measure(ctx context.Context, req *servercontext.Request, in measureIn) (measured, error) {
	out := measured{Bytes: make(map[string]int64, len(in.URLs))}
	var mu sync.Mutex
	group, all := errgroup.WithContext(ctx) // all ends with the call, and with the first error
	group.SetLimit(atOnce)
	for _, address := range in.URLs {
		if all.Err() != nil {
			break // do not start what would be stopped at once
		}
		group.Go(func() error {
			n, err := size(all, address)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			out.Bytes[address] = n
			return req.Progress(all, float64(len(out.Bytes)), float64(len(in.URLs)), address)
		})
	}
	err := group.Wait() // from here on nothing of this call runs
	return out, cmp.Or(cancellation.Checkpoint(ctx), err)
}

// endregion

// size reads a page and returns how long it is.
func size(ctx context.Context, address string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", address, response.Status)
	}
	return io.Copy(io.Discard, io.LimitReader(response.Body, maxBytes))
}

func main() {
	s := server.New(&mcp.Implementation{Name: "fanout", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "measure", Description: "Measures pages."}, measure)
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Fatal(err)
	}
}
