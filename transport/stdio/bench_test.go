package stdio_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/require"
)

// BenchmarkEcho measures a call of a tool that returns its argument, with so many
// calls outstanding. The client is a bare loop in the same process, so its cost is
// part of the figure; BenchmarkBareLoop is that cost and the stream's alone.
func BenchmarkEcho(b *testing.B) {
	for _, x := range streams {
		for _, outstanding := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/outstanding=%d", x.name, outstanding), func(b *testing.B) {
				in, toServer := x.open(b)
				fromServer, out := x.open(b)
				ctx, stop := context.WithCancel(b.Context())
				returned := make(chan error, 1)
				go func() { returned <- stdio.ServeStream(ctx, newFixture(nil).Server, in, out, nil) }()
				lines := bufio.NewReaderSize(fromServer, 64<<10)
				fmt.Fprintf(toServer, initializeLine+"\n", "2025-11-25")
				_, err := lines.ReadSlice('\n')
				require.NoError(b, err)
				roundTrips(b, lines, toServer, outstanding)
				stop()
				require.NoError(b, <-returned)
			})
		}
	}
}

// BenchmarkBareLoop is the same with a server that answers each line on the loop that
// reads them, without looking at it.
func BenchmarkBareLoop(b *testing.B) {
	for _, x := range streams {
		for _, outstanding := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/outstanding=%d", x.name, outstanding), func(b *testing.B) {
				in, toServer := x.open(b)
				fromServer, out := x.open(b)
				done := make(chan struct{})
				go func() {
					defer close(done)
					lines := bufio.NewReaderSize(in, 64<<10)
					for {
						if _, err := lines.ReadSlice('\n'); err != nil {
							return
						}
						if _, err := io.WriteString(out, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`+"\n"); err != nil {
							return
						}
					}
				}()
				roundTrips(b, bufio.NewReaderSize(fromServer, 64<<10), toServer, outstanding)
				toServer.Close()
				<-done
			})
		}
	}
}

// streams are the ways of bytes from one end to the other.
var streams = []struct {
	name string
	open func(b *testing.B) (io.ReadCloser, io.WriteCloser)
}{
	{"pipe", func(b *testing.B) (io.ReadCloser, io.WriteCloser) {
		r, w, err := os.Pipe()
		require.NoError(b, err)
		b.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}},
	{"memory", func(b *testing.B) (io.ReadCloser, io.WriteCloser) {
		r, w := io.Pipe()
		b.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}},
}

// roundTrips reads b.N answers, and sends a call for each. Calls that are ready leave in
// one write, on a goroutine of its own, since a pipe in memory holds nothing.
func roundTrips(b *testing.B, lines *bufio.Reader, w io.Writer, outstanding int) {
	tokens := make(chan struct{}, outstanding)
	for range outstanding {
		tokens <- struct{}{}
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		var buf []byte
		next := 0
		for range tokens {
			buf = buf[:0]
			for n := len(tokens) + 1; n > 0; n-- {
				next++
				buf = append(buf, `{"jsonrpc":"2.0","id":`...)
				buf = strconv.AppendInt(buf, int64(next), 10)
				buf = append(buf, `,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`+"\n"...)
				if n > 1 {
					<-tokens
				}
			}
			if _, err := w.Write(buf); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := lines.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
		tokens <- struct{}{}
	}
	close(tokens)
	for range outstanding { // what is still on its way
		if _, err := lines.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	<-sent
}
