package streamable_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	_ mcp.EventStore       = (*streamable.RingStore)(nil)
	_ streamable.Forgetter = (*streamable.RingStore)(nil)
)

// after collects what a store has after an index.
func after(t testing.TB, store mcp.EventStore, session, stream string, index int) (texts []string, err error) {
	t.Helper()
	for data, e := range store.After(t.Context(), session, stream, index) {
		if e != nil {
			require.Empty(t, texts, "an error comes instead of events")
			return nil, e
		}
		texts = append(texts, string(data))
	}
	return texts, nil
}

func TestRingStoreKeepsStreamsApart(t *testing.T) {
	store := streamable.NewRingStore(0)
	for _, key := range [][2]string{{"s1", "1"}, {"s1", "2"}, {"s2", "1"}} {
		require.NoError(t, store.Open(t.Context(), key[0], key[1]))
		for i := range 3 {
			require.NoError(t, store.Append(t.Context(), key[0], key[1], []byte(fmt.Sprint(key, i))))
		}
	}
	got, err := after(t, store, "s1", "2", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"[s1 2] 1", "[s1 2] 2"}, got)
	got, err = after(t, store, "s1", "2", -1)
	require.NoError(t, err)
	require.Len(t, got, 3)
	got, err = after(t, store, "s1", "2", 2)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = after(t, store, "s1", "2", 99)
	require.NoError(t, err)
	require.Empty(t, got)

	require.NoError(t, store.Forget(t.Context(), "s1", "2"))
	_, err = after(t, store, "s1", "2", 0)
	require.Error(t, err)
	require.NoError(t, store.SessionClosed(t.Context(), "s1"))
	_, err = after(t, store, "s1", "1", 0)
	require.Error(t, err)
	got, err = after(t, store, "s2", "1", 1)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.NoError(t, store.SessionClosed(t.Context(), "s2"))
	require.NoError(t, store.SessionClosed(t.Context(), "s2"))
	require.NoError(t, store.Forget(t.Context(), "s2", "1"))
	require.Zero(t, store.Size())
}

func TestRingStoreIsBounded(t *testing.T) {
	const size = 64 << 10
	store := streamable.NewRingStore(size)
	for i := range 10_000 {
		require.NoError(t, store.Append(t.Context(), "s", fmt.Sprint(i%100), []byte(strings.Repeat("x", 100))))
		require.LessOrEqual(t, store.Size(), size)
	}
	// The newest are there, the oldest are reported as lost.
	got, err := after(t, store, "s", "99", 98)
	require.NoError(t, err)
	require.Len(t, got, 1)
	_, err = after(t, store, "s", "99", -1)
	require.ErrorIs(t, err, mcp.ErrEventsPurged)
}

func TestRingStoreGivesNoStreamEverything(t *testing.T) {
	store := streamable.NewRingStore(64 << 10)
	require.NoError(t, store.Append(t.Context(), "quiet", "1", []byte("kept")))
	for range 10_000 {
		require.NoError(t, store.Append(t.Context(), "noisy", "1", []byte(strings.Repeat("x", 100))))
	}
	got, err := after(t, store, "quiet", "1", -1)
	require.NoError(t, err)
	require.Equal(t, []string{"kept"}, got)
	require.LessOrEqual(t, store.Size(), 10<<10)
	// One event that is larger than its share is kept as long as it is the newest.
	require.NoError(t, store.Append(t.Context(), "large", "1", []byte(strings.Repeat("x", 20<<10))))
	got, err = after(t, store, "large", "1", -1)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

func TestRingStoreConcurrently(t *testing.T) {
	store := streamable.NewRingStore(16 << 10)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			session := fmt.Sprint("s", g%3)
			for i := range 500 {
				stream := fmt.Sprint(i % 7)
				assert.NoError(t, store.Append(t.Context(), session, stream, []byte("data")))
				for _, err := range store.After(t.Context(), session, stream, 0) {
					_ = err // purged by others, perhaps
				}
				if i%50 == 0 {
					assert.NoError(t, store.Forget(t.Context(), session, stream))
				}
				if i%200 == 199 {
					assert.NoError(t, store.SessionClosed(t.Context(), session))
				}
			}
		})
	}
	wg.Wait()
	for g := range 3 {
		require.NoError(t, store.SessionClosed(t.Context(), fmt.Sprint("s", g)))
	}
	require.Zero(t, store.Size())
}
