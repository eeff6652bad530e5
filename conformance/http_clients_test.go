package conformance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The oldest revision with this transport.
const oldestOverHTTP = "2025-03-26"

// perParked is how many goroutines a parked handler has: the one that it runs on.
const perParked = 1

// One running server serves all of the clients at the same time, in both eras, in each one's
// newest and oldest revision. Afterwards nothing of them is left.
func TestClientsOverHTTP(t *testing.T) {
	url := serveEverything(t)
	own := newPeer(t, url)
	own.stats(t, t.Context())
	before := own.stats(t, t.Context())

	var visits []*visit
	for _, c := range clients(oldestOverHTTP) {
		visits = append(visits, &visit{client: c, flags: []string{"url=" + url, c.patience(time.Minute)}})
	}
	runAll(t, visits, len(visits))
	for _, v := range visits {
		t.Run(v.client.name, v.judge)
	}

	assert.EventuallyWithT(t, func(ct *assert.CollectT) {
		after := own.stats(ct, t.Context())
		assert.Zero(ct, after.InFlight, "requests")
		assert.Zero(ct, after.Lingering, "cancelled handlers")
		assert.Equal(ct, before.Sessions, after.Sessions, "sessions")
		// Where a client gives up between two rounds, the server is not told.
		assert.LessOrEqual(ct, after.Goroutines, before.Goroutines+perParked*after.Parked, "goroutines, %d handlers parked", after.Parked)
	}, surely, 100*time.Millisecond)
	t.Logf("before: %+v, after: %+v", before, own.stats(t, t.Context()))
}
