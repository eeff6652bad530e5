package streamable_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Streams that break off are resumed from a store of bounded size. ConnContext has the system
// give up on clients that have vanished without a word.
func ExampleNewRingStore() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)
	store := streamable.NewRingStore(8 << 20)
	web := &http.Server{
		Handler:           streamable.NewHandler(s, &streamable.Options{EventStore: store}),
		ReadHeaderTimeout: 10 * time.Second,
		ConnContext:       streamable.ConnContext,
	}
	fmt.Println(web.Handler != nil, store.Size())
	// Output: true 0
}
