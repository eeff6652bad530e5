package cancellation_test

import (
	"context"
	"testing"

	"github.com/heedmcp/heed/cancellation"
	"github.com/stretchr/testify/require"
)

type k struct{}

func TestSmoke(t *testing.T) {
	for _, o := range []cancellation.Origin{cancellation.Peer, cancellation.Timeout} {
		s := cancellation.New(context.Background())
		ctx := context.WithValue(s.Context(), k{}, 1)
		d, c := context.WithCancel(ctx)
		defer c()
		ran := make(chan *cancellation.Error)
		s.Token().OnCancel(func(e *cancellation.Error) { ran <- e })
		require.NoError(t, cancellation.Checkpoint(d))
		err := cancellation.Shield(d, func(ctx context.Context) error {
			require.True(t, s.Cancel(o, "r"))
			require.NoError(t, d.Err())
			require.NotNil(t, s.Requested())
			return cancellation.Shield(ctx, func(context.Context) error { return nil })
		})
		require.NoError(t, err)
		<-ran
		require.Equal(t, o == cancellation.Timeout, d.Err() == context.DeadlineExceeded)
		require.Same(t, s.Requested(), context.Cause(d))
		require.Same(t, s.Requested(), context.Cause(ctx))
		require.Same(t, s.Requested(), s.Finish())
		s.Wait()
	}
}
