package streamable_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInvariant_T1_SessionsInUseAreKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{SessionIdle: time.Minute, MaxSessions: 3})
		listening, running := e.initialize(server.Version20251125, nil), e.initialize(server.Version20251125, nil)
		w := listening.open(newCall(http.MethodGet, ""))
		w.next()
		running.open(classicTool(1, "wait", M{"tag": "a"}))
		idle := e.initialize(server.Version20251125, nil)
		synctest.Wait()                                    // until the server has let go of the last request
		other := e.initialize(server.Version20251125, nil) // takes the place of the idle one
		require.Equal(t, http.StatusNotFound, idle.do(classic(1, "ping", nil)).status)
		time.Sleep(time.Hour)
		require.Equal(t, http.StatusNotFound, other.do(classic(1, "ping", nil)).status, "expired")
		require.Equal(t, 200, listening.do(classic(1, "ping", nil)).status)
		require.Equal(t, 200, running.do(classic(2, "ping", nil)).status)
		f.untouched("a")
		w.drop()
		running.accept(cancelOf(1, "r"))
		f.next("a")
		time.Sleep(2*time.Minute + time.Second)
		require.Zero(t, f.s.Stats().Sessions)
	})
}

func TestInvariant_T2_ARemovedSessionIsFoundByNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, nil)
		for range 50 {
			in := e.initialize(server.Version20251125, nil)
			deleted := make(chan struct{})
			var wg sync.WaitGroup
			for i := range 5 {
				wg.Go(func() {
					a := in.do(classic(i, "ping", nil))
					assert.Contains(t, []int{200, 400, 404}, a.status)
				})
			}
			wg.Go(func() {
				assert.Equal(t, http.StatusNoContent, in.do(newCall(http.MethodDelete, "")).status)
				close(deleted)
			})
			<-deleted
			require.Equal(t, http.StatusNotFound, in.do(classic(9, "ping", nil)).status)
			wg.Wait()
		}
		require.Zero(t, f.s.Stats().Sessions)
	})
}

func TestInvariant_T3_TheLongestUnusedMakesRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{MaxSessions: 3})
		var all []*endpoint
		for range 3 {
			all = append(all, e.initialize(server.Version20251125, nil))
			time.Sleep(time.Second)
		}
		require.Equal(t, 200, all[0].do(classic(1, "ping", nil)).status) // used again
		synctest.Wait()
		e.initialize(server.Version20251125, nil)
		require.Equal(t, []int{200, 404, 200}, statuses(all))
		require.Equal(t, 3, f.s.Stats().Sessions)
	})
}

func statuses(all []*endpoint) (codes []int) {
	for i, e := range all {
		codes = append(codes, e.do(classic(fmt.Sprint("s", i), "ping", nil)).status)
	}
	return codes
}
