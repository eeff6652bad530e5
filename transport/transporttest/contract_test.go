package transporttest_test

import (
	"testing"

	"github.com/heedmcp/heed/transport/streamable"
	"github.com/heedmcp/heed/transport/transporttest"
)

func TestStreamKeepsTheContract(t *testing.T) {
	transporttest.Run(t, inMemory(nil), transporttest.Options{
		Settings: transporttest.Streams, Bubble: true, NoSkips: true,
	})
}

func TestHTTPKeepsTheContract(t *testing.T) {
	transporttest.Run(t, inMemoryHTTP(nil, nil), transporttest.Options{
		Settings: transporttest.OverHTTP, Bubble: true, NoSkips: true,
	})
}

// The form in which the server prefers to answer changes nothing.
func TestHTTPThatAlwaysStreamsKeepsTheContract(t *testing.T) {
	transporttest.Run(t, inMemoryHTTP(&streamable.Options{Response: streamable.Stream}, nil), transporttest.Options{
		Settings: transporttest.OverHTTP, Bubble: true, NoSkips: true, Rules: sample(transporttest.OverHTTP),
	})
}
