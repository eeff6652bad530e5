package cancellation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// A timer or a channel is waited for beside the end of the request.
func ExampleCheckpoint_timer() {
	// region timer
	pause := func(ctx context.Context, d time.Duration) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return cancellation.Checkpoint(ctx) // who asked, and why
		}
	}
	// endregion
	source := cancellation.New(context.Background())
	source.Cancel(cancellation.Peer, "user pressed stop")
	fmt.Println(pause(source.Context(), time.Hour))
	// Output: cancelled by peer: "user pressed stop"
}

// Whatever takes a context stops with it. Its error says so in words of its own;
// the token knows who asked.
func ExampleCheckpoint_http() {
	// region http
	fetch := func(ctx context.Context, url string) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, err
		}
		res, err := http.DefaultClient.Do(req) // ends when the request is cancelled
		if err != nil {
			if cancelled := cancellation.Checkpoint(ctx); cancelled != nil {
				return nil, cancelled
			}
			return nil, err
		}
		defer res.Body.Close()
		return io.ReadAll(res.Body)
	}
	// endregion
	source := cancellation.New(context.Background())
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		source.Cancel(cancellation.Peer, "user pressed stop")
		<-r.Context().Done() // the upstream server sees it as well
	}))
	defer upstream.Close()
	_, err := fetch(source.Context(), upstream.URL)
	fmt.Println(err)
	// Output: cancelled by peer: "user pressed stop"
}

// Parts of a request get the request's context, and all of them stop with it.
func ExampleCheckpoint_parts() {
	work := func(ctx context.Context, part int) error {
		if part == 2 {
			return errors.New("no such file")
		}
		<-ctx.Done()
		return cancellation.Checkpoint(ctx)
	}
	// region parts
	all := func(ctx context.Context, parts int) error {
		ctx, fail := context.WithCancelCause(ctx) // ends with the request, or with the first failure
		defer fail(nil)
		var running sync.WaitGroup
		for part := range parts {
			running.Go(func() {
				if err := work(ctx, part); err != nil {
					fail(err)
				}
			})
		}
		running.Wait() // a handler that returns leaves nothing behind
		return context.Cause(ctx)
	}
	// endregion
	source := cancellation.New(context.Background())
	defer source.Finish()
	fmt.Println(all(source.Context(), 4))
	// Output: no such file
}

// What must be done after a cancel gets a context that does not end with it.
func ExampleCheckpoint_cleanUp() {
	release := func(ctx context.Context) { fmt.Println("released:", ctx.Err() == nil) }
	// region cleanup
	withLock := func(ctx context.Context, work func(context.Context) error) error {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			release(ctx)
		}()
		return work(ctx)
	}
	// endregion
	source := cancellation.New(context.Background())
	fmt.Println(withLock(source.Context(), func(ctx context.Context) error {
		source.Cancel(cancellation.Peer, "stop")
		return cancellation.Checkpoint(ctx)
	}))
	// Output:
	// released: true
	// cancelled by peer: "stop"
}

// The cancellation is an error like any other: it can be taken apart.
func ExampleError_Is() {
	// region origin
	explain := func(err error) string {
		var cancelled *cancellation.Error
		switch {
		case errors.As(err, &cancelled) && cancelled.Origin == cancellation.Timeout:
			return "took too long"
		case errors.As(err, &cancelled):
			return fmt.Sprintf("stopped by %s: %q", cancelled.Origin, cancelled.Reason) // the reason is somebody else's text
		case err != nil:
			return "failed: " + err.Error()
		}
		return "done"
	}
	// endregion
	stop := &cancellation.Error{Origin: cancellation.Peer, Reason: "wrong filter"}
	limit := &cancellation.Error{Origin: cancellation.Timeout, Reason: "limit of 1s reached"}
	fmt.Println(explain(fmt.Errorf("batch 3: %w", stop)))
	fmt.Println(explain(limit))
	fmt.Println(errors.Is(stop, context.Canceled), errors.Is(limit, context.DeadlineExceeded), errors.Is(limit, context.Canceled))
	// Output:
	// stopped by peer: "wrong filter"
	// took too long
	// true true false
}

// An owner that watches for a cancel at some cost can put that off until
// somebody waits.
func ExampleSource_SetWaitHandler() {
	source := cancellation.New(context.Background())
	source.SetWaitHandler(func() { fmt.Println("somebody waits") })
	fmt.Println("polled:", source.Token().Cancelled())
	_ = source.Token().Done()
	// Output:
	// polled: false
	// somebody waits
}

func ExampleError_Error() {
	fmt.Println(&cancellation.Error{Origin: cancellation.Shutdown, Reason: "deploy\x1b[2J"})
	// Output: cancelled by shutdown: "deploy\x1b[2J"
}

func ExampleOrigin_String() {
	for o := cancellation.Peer; o <= cancellation.Parent; o++ {
		fmt.Println(o)
	}
	fmt.Println(cancellation.Origin(0))
	// Output:
	// peer
	// disconnect
	// session_end
	// timeout
	// shutdown
	// parent
	// unknown
}
