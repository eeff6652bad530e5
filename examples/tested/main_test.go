package main

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/cancellation/cancellationtest"
	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// region every
// The handler is cancelled at each of its checkpoints, and at the door of each shield. Whenever
// that is, the books balance; a second call does the rest, and nobody is charged twice.
func TestBooksBalanceWheneverItIsCancelled(t *testing.T) {
	in := chargeIn{Customers: []string{"ada", "bob", "cleo"}}
	cancellationtest.Every(t, func(testing.TB) cancellationtest.Run {
		b := newBooks()
		return cancellationtest.Run{
			Handler: func(ctx context.Context) error {
				_, err := b.charge(ctx, servercontext.New(servercontext.Options{}), in)
				return err
			},
			Check: func(t testing.TB, o cancellationtest.Outcome) {
				assert.Equal(t, b.charged, b.receipts)
				if o.Err != nil {
					assert.ErrorIs(t, o.Err, cancellation.ErrCancelled)
				} else {
					assert.Len(t, b.charged, 3) // a cancel that came too late is no error
				}
				_, err := b.charge(context.Background(), nil, in) // a nil request is valid
				assert.NoError(t, err)
				assert.Equal(t, map[string]int{"ada": 1, "bob": 1, "cleo": 1}, b.charged)
				assert.Equal(t, b.charged, b.receipts)
			},
		}
	})
}

// endregion

func TestChargesOverStdio(t *testing.T) {
	session := host.Start(t, host.Program(t), host.Options{})
	assert.Equal(t, "charged 2", session.Text("charge", map[string]any{"customers": []string{"ada", "bob"}}))
}
