package stdio_test

import (
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/assert"
)

// A million cancels of nothing, from one who writes as fast as it can, hit nobody and leave nothing: the session goes on
// as if they had not been.
func TestAMillionUnknownCancels(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), nil)
		c.initialize()
		c.call(`"own"`, "wait", "")
		synctest.Wait() // the handler has begun
		before := liveHeap()
		var lines []byte
		for i := range flood {
			lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
			lines = strconv.AppendInt(lines, int64(i), 10)
			lines = append(lines, `,"reason":"there is no such request"}}`+"\n"...)
			if len(lines) > 60_000 || i == flood-1 {
				c.write(string(lines))
				lines = lines[:0]
			}
		}
		c.echo(`"after"`) // all of them have been read
		assert.EqualValues(t, 1, c.running.Load(), "the call with another id runs")
		assert.Less(t, liveHeap(), before+(1<<20))
		c.cancel(`"own"`)
		c.quiet()
		c.end()
		assert.Zero(t, c.running.Load())
	})
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
