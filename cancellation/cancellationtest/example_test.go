package cancellationtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/cancellation/cancellationtest"
)

// printer stands in for the *testing.T of a test function: it prints failures.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// The job pays for what it booked, but can be stopped in between.
func ExampleEvery() {
	t := printer{}
	// region every
	cancellationtest.Every(t, func(t testing.TB) cancellationtest.Run {
		booked, paid := 0, 0 // fresh for every run
		return cancellationtest.Run{
			Handler: func(ctx context.Context) error {
				for range 2 {
					booked++
					if err := cancellation.Checkpoint(ctx); err != nil {
						return err
					}
					paid++
				}
				return nil
			},
			Check: func(t testing.TB, o cancellationtest.Outcome) {
				if booked != paid {
					t.Errorf("booked %d, paid %d", booked, paid)
				}
			},
		}
	})
	// endregion
	// Output:
	// cancelled at checkpoint 1: booked 1, paid 0
	// cancelled at checkpoint 2: booked 2, paid 1
}

func ExampleAt() {
	t := printer{}
	out := cancellationtest.At(t, 3, func(ctx context.Context) error {
		for step := 1; ; step++ {
			if err := cancellation.Checkpoint(ctx); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
	})
	fmt.Println(out.Err)
	// Output: step 3: cancelled by peer: "cancelled by a test"
}

func ExampleRun_At() {
	t := printer{}
	out := cancellationtest.Run{
		Handler: cancellation.Checkpoint,
		Origin:  cancellation.Timeout,
		Reason:  "limit of 1s",
	}.At(t, 1)
	fmt.Println(out.Err)
	// Output: cancelled by timeout: "limit of 1s"
}
