package cancellation_test

import (
	"context"
	"fmt"
	"net"

	"github.com/heedmcp/heed/cancellation"
)

// batches stands for a database.
type batches struct{ done []int }

func (l *batches) commit(_ context.Context, batch int) error {
	l.done = append(l.done, batch)
	return nil
}

// A batch is committed whole or not at all; between batches the work can stop.
func ExampleShield_batches() {
	source := cancellation.New(context.Background())
	ctx, db := source.Context(), &batches{}

	// region shield
	closeAll := func(ctx context.Context, n int) error {
		for batch := range n {
			if err := cancellation.Checkpoint(ctx); err != nil {
				return err // stopped between two batches
			}
			err := cancellation.Shield(ctx, func(ctx context.Context) error {
				return db.commit(ctx, batch) // a cancel waits until this is done
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	// endregion
	source.Cancel(cancellation.Timeout, "limit of 1s reached")
	fmt.Println(closeAll(ctx, 3), db.done)
	// Output: cancelled by timeout: "limit of 1s reached" []
}

// A hook frees what knows nothing of contexts.
func ExampleToken_OnCancel_blockedRead() {
	source := cancellation.New(context.Background())
	defer source.Finish()
	ctx := source.Context()
	conn, peer := net.Pipe()
	defer peer.Close()

	// region hook
	stop := cancellation.FromContext(ctx).OnCancel(func(*cancellation.Error) {
		conn.Close() // the read below returns
	})
	defer stop()
	// endregion
	source.Cancel(cancellation.Peer, "user pressed stop")
	_, err := conn.Read(make([]byte, 1))
	fmt.Println(err != nil, cancellation.Checkpoint(ctx))
	// Output: true cancelled by peer: "user pressed stop"
}
