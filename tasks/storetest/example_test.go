package storetest_test

import (
	"testing"

	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/tasks/storetest"
)

// The whole contract of a store, as subtests of a test of its own. open makes a store that is empty: a
// folder of t.TempDir, a schema with a name of its own, and t.Cleanup for what has to be closed.
func ExampleRun() {
	testStore := func(t *testing.T) {
		// region run
		storetest.Run(t, func(_ *testing.T, max int) tasks.Store {
			return tasks.NewMemory(max, 0) // yours: empty, with room for so many tasks
		})
		// endregion
	}
	_ = testStore // go test calls it
}
