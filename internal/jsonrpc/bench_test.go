package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

func corpus() []struct {
	name string
	text []byte
} {
	call := func(text string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + text + `"},"_meta":{"progressToken":"p1"}}}`)
	}
	return []struct {
		name string
		text []byte
	}{
		{"cancelled", []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":42,"reason":"stop"}}`)},
		{"call", call("hello")},
		{"call16k", call(strings.Repeat("lorem ipsum dolo", 1<<10))},
		{"call1M", call(strings.Repeat("lorem ipsum dolo", 1<<16))},
		{"call1MCJK", call(strings.Repeat("漢字かな交じり文", 1<<20/24))},
		{"call1MEscapes", call(strings.Repeat(`a line of text, then a break\n`, 1<<20/30))},
		{"numbers", []byte(`{"jsonrpc":"2.0","id":42,"method":"m","params":{"v":[` + strings.Repeat("12.5,-3,", 1000) + `0]}}`)},
	}
}

// BenchmarkScan reads the envelope and validates everything.
func BenchmarkScan(b *testing.B) {
	for _, c := range corpus() {
		b.Run(c.name, func(b *testing.B) {
			var m jsonrpc.Message
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := jsonrpc.Scan(c.text, jsonrpc.Limits{}, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStdValid is the yardstick: encoding/json validating the same texts
// without finding anything in them, and without looking at UTF-8.
func BenchmarkStdValid(b *testing.B) {
	for _, c := range corpus() {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				if !json.Valid(c.text) {
					b.Fatal("invalid")
				}
			}
		})
	}
}

func BenchmarkAppendString(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"short", "hello"},
		{"16k", strings.Repeat("lorem ipsum dolo", 1<<10)},
		{"16kCJK", strings.Repeat("漢字かな交じり文", 1<<14/24)},
		{"16kLines", strings.Repeat("a line of text, then a break\n", 1<<14/29)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var buf []byte
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				buf = jsonrpc.AppendString(buf[:0], c.text)
			}
		})
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	var buf []byte
	id, result := jsonrpc.NumberID(42), []byte(`{"content":[{"type":"text","text":"hello"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		buf = jsonrpc.AppendResponse(buf[:0], id, result)
	}
}
