package model_test

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepsToTake is how many steps the test takes; MODEL_STEPS changes it.
const stepsToTake = 5000

// Whatever clients, handlers, operators and the clock do, and in whatever order: the server does
// what the model says. Each request is answered at most once and never after its cancel was
// received, exactly once if nobody cancelled it; no token fires for another's
// cancel; and of a request that is over nothing is left.
func TestServerFollowsTheModel(t *testing.T) {
	want := stepsToTake
	if text := os.Getenv("MODEL_STEPS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, "MODEL_STEPS")
		want = n
	}
	require.NoError(t, flag.Set("rapid.shrinktime", "10s"))
	if os.Getenv("MODEL_STEPS") == "" {
		require.NoError(t, flag.Set("rapid.seed", "1")) // the same scripts each time; make soak-model tries others
	}
	taken := 0
	for taken < want && !t.Failed() {
		// In portions: rapid decides beforehand how often it checks.
		checks := max((want-taken)/meanSteps, 1)
		require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(checks)))
		rapid.Check(t, func(rt *rapid.T) {
			s := scriptGen.Draw(rt, "script")
			w := run(t, s, fault{})
			taken += w.steps
			if w.err != nil {
				rt.Fatal(w.report(s))
			}
		})
	}
	t.Logf("%d steps", taken)
}

// run plays a script against a server of its own, in a bubble.
func run(t *testing.T, s script, f fault) (w *world) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil && w != nil {
			w.fail("%v", p) // goroutines that never end
		} else if p != nil {
			panic(p)
		}
	}()
	bubble.Test(t, func(*testing.T) {
		w = newWorld(s.Slots, f)
		defer w.background.Wait()
		defer w.close()
		synctest.Wait()
		w.client.CloseIdleConnections()
		time.Sleep(time.Minute)
		w.settle()
		goroutines, _ := goroutinesOfBubble()
		for _, step := range s.Steps {
			if w.failed() {
				return
			}
			w.play(step)
		}
		w.settle()
		w.finish(s.Drains, goroutines)
	})
	return w
}
