//go:build !race

package stdio_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/require"
)

// What a call allocates from the bytes of its line to those of its answer, the goroutine that
// runs it and the queue of what is written included. More should be on purpose.
func TestAllocationsPerCall(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- stdio.ServeStream(ctx, newFixture(nil).Server, in, out, nil) }()
	lines := bufio.NewReaderSize(fromServer, 64<<10)
	exchange := func(line []byte) []byte {
		_, err := toServer.Write(line)
		require.NoError(t, err)
		answer, err := lines.ReadSlice('\n')
		require.NoError(t, err)
		return answer
	}
	exchange(fmt.Appendf(nil, initializeLine+"\n", "2025-11-25"))
	call := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}` + "\n")
	require.Contains(t, string(exchange(call)), "hello")
	got := testing.AllocsPerRun(500, func() { exchange(call) })
	require.LessOrEqual(t, got, 13.0) // one is the goroutine's, when none is left to be used again
	stop()
	require.NoError(t, <-returned)
}
