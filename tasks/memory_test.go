package tasks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/tasks/storetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, max int) tasks.Store { return tasks.NewMemory(max, 0) })
}

func TestMemoryIsBoundedInBytes(t *testing.T) {
	m := tasks.NewMemory(0, 64<<10)
	large := &tasks.Record{ID: "large", Status: tasks.Working, Created: time.Now(), Run: 1, Params: make(json.RawMessage, 60<<10)}
	require.NoError(t, m.Create(t.Context(), large))
	second := &tasks.Record{ID: "second", Status: tasks.Working, Created: time.Now(), Run: 1, Params: make(json.RawMessage, 4<<10)}
	require.ErrorIs(t, m.Create(t.Context(), second), tasks.ErrFull)

	// What a task takes less when it has ended is there for others.
	large.Status, large.Params = tasks.Completed, nil
	require.NoError(t, m.Save(t.Context(), large))
	require.NoError(t, m.Create(t.Context(), second))
	assert.Equal(t, 2, m.Len())
}
