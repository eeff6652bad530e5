package cancellation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/heedmcp/heed/cancellation"
)

// The owner's side and the worker's side of one request.
func Example() {
	source := cancellation.New(context.Background())
	work := func(ctx context.Context) error {
		for step := 1; ; step++ {
			if err := cancellation.Checkpoint(ctx); err != nil {
				return err
			}
			fmt.Println("step", step)
			if step == 2 {
				source.Cancel(cancellation.Peer, "user pressed stop") // by whoever reads the wire
			}
		}
	}

	err := work(source.Context())
	if cancelled := source.Finish(); cancelled != nil {
		fmt.Println(err)
		fmt.Println("answer owed:", cancelled.Origin.AnswerOwed())
	}
	// Output:
	// step 1
	// step 2
	// cancelled by peer: "user pressed stop"
	// answer owed: false
}

func ExampleNew() {
	request := cancellation.New(context.Background())
	defer request.Finish()
	part := cancellation.New(request.Context()) // stops with the request
	defer part.Finish()

	request.Cancel(cancellation.Shutdown, "deploy")
	fmt.Println(part.Token().Err())
	// Output: cancelled by shutdown: "deploy"
}

func ExampleSource_Cancel() {
	source := cancellation.New(context.Background())
	fmt.Println(source.Cancel(cancellation.Peer, "first"))
	fmt.Println(source.Cancel(cancellation.Timeout, "second"))
	fmt.Println(source.Finish())
	// Output:
	// true
	// false
	// cancelled by peer: "first"
}

func ExampleSource_Context() {
	source := cancellation.New(context.Background())
	ctx, cancel := context.WithCancel(source.Context())
	defer cancel()

	source.Cancel(cancellation.Timeout, "took too long")
	<-ctx.Done()
	fmt.Println(ctx.Err())
	fmt.Println(context.Cause(ctx))
	// Output:
	// context deadline exceeded
	// cancelled by timeout: "took too long"
}

func ExampleSource_Token() {
	source := cancellation.New(context.Background())
	token := source.Token()
	fmt.Println(token == cancellation.FromContext(source.Context()))
	// Output: true
}

// While a shield defers delivery, the owner knows and the worker does not.
func ExampleSource_Requested() {
	source := cancellation.New(context.Background())
	_ = cancellation.Shield(source.Context(), func(ctx context.Context) error {
		source.Cancel(cancellation.Peer, "stop")
		fmt.Println("requested:", source.Requested() != nil)
		fmt.Println("delivered:", source.Token().Cancelled())
		return nil
	})
	fmt.Println("delivered:", source.Token().Cancelled())
	// Output:
	// requested: true
	// delivered: false
	// delivered: true
}

func ExampleSource_Finish() {
	source := cancellation.New(context.Background())
	if cancelled := source.Finish(); cancelled == nil {
		fmt.Println("answer")
	}
	fmt.Println("too late:", source.Cancel(cancellation.Peer, "stop"))
	fmt.Println(context.Cause(source.Context()))
	// Output:
	// answer
	// too late: false
	// request already finished
}

func ExampleSource_Wait() {
	source := cancellation.New(context.Background())
	source.Token().OnCancel(func(*cancellation.Error) { fmt.Println("closed") })
	source.Cancel(cancellation.Peer, "stop")
	source.Finish()
	source.Wait()
	fmt.Println("all hooks have returned")
	// Output:
	// closed
	// all hooks have returned
}

func ExampleSource_Times() {
	source := cancellation.New(context.Background())
	source.Cancel(cancellation.Peer, "stop")
	requested, observed := source.Times()
	fmt.Println(requested.IsZero(), observed.IsZero())

	_ = cancellation.Checkpoint(source.Context()) // the worker looks
	requested, observed = source.Times()
	fmt.Println(observed.Before(requested))
	// Output:
	// false true
	// false
}

func ExampleSource_SetPanicHandler() {
	source := cancellation.New(context.Background())
	source.SetPanicHandler(func(value any, stack []byte) { fmt.Println("hook panicked:", value) })
	source.Token().OnCancel(func(*cancellation.Error) { panic("boom") })
	source.Cancel(cancellation.Peer, "stop")
	source.Wait()
	// Output: hook panicked: boom
}

func ExampleFromContext() {
	token := cancellation.FromContext(context.Background())
	fmt.Println(token == nil, token.Cancelled(), token.Err())
	// Output: true false <nil>
}

func ExampleToken_Done() {
	source := cancellation.New(context.Background())
	source.Cancel(cancellation.Disconnect, "stream closed")
	results := make(chan int)
	select {
	case r := <-results:
		fmt.Println(r)
	case <-source.Token().Done():
		fmt.Println(source.Token().Err())
	}
	// Output: cancelled by disconnect: "stream closed"
}

func ExampleToken_Cancelled() {
	source := cancellation.New(context.Background())
	token := source.Token()
	for i := 0; !token.Cancelled(); i++ {
		if i == 3 {
			source.Cancel(cancellation.Peer, "stop")
		}
	}
	fmt.Println("stopped")
	// Output: stopped
}

func ExampleToken_Err() {
	source := cancellation.New(context.Background())
	source.Cancel(cancellation.Peer, "stop")
	err := source.Token().Err()
	fmt.Println(errors.Is(err, cancellation.ErrCancelled), errors.Is(err, context.Canceled))
	// Output: true true
}

// A read that no context reaches is freed by closing what it reads from.
func ExampleToken_OnCancel() {
	source := cancellation.New(context.Background())
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	stop := source.Token().OnCancel(func(*cancellation.Error) { r.Close() })
	defer stop()

	go source.Cancel(cancellation.Peer, "stop")
	_, err = io.ReadAll(r)
	fmt.Println("freed:", err != nil)
	source.Wait()
	// Output: freed: true
}

func ExampleCheckpoint() {
	source := cancellation.New(context.Background())
	ctx := source.Context()
	for batch := 1; batch <= 3; batch++ {
		if err := cancellation.Checkpoint(ctx); err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println("batch", batch)
		if batch == 2 {
			source.Cancel(cancellation.Timeout, "limit of 1s")
		}
	}
	// Output:
	// batch 1
	// batch 2
	// cancelled by timeout: "limit of 1s"
}

func ExampleShield() {
	source := cancellation.New(context.Background())
	ctx := source.Context()
	commit := func(ctx context.Context) error {
		source.Cancel(cancellation.Peer, "stop") // arrives in the middle
		fmt.Println("rows and ledger written:", ctx.Err() == nil)
		return nil
	}
	fmt.Println(cancellation.Shield(ctx, commit))
	fmt.Println(cancellation.Shield(ctx, commit))
	// Output:
	// rows and ledger written: true
	// <nil>
	// cancelled by peer: "stop"
}

func ExampleError() {
	err := fmt.Errorf("close postings: %w", &cancellation.Error{Origin: cancellation.Peer, Reason: "wrong\nfilter"})
	var cancelled *cancellation.Error
	if errors.As(err, &cancelled) {
		fmt.Println(cancelled.Origin)
		fmt.Printf("%q\n", cancelled.Reason)
	}
	fmt.Println(err)
	// Output:
	// peer
	// "wrong\nfilter"
	// close postings: cancelled by peer: "wrong\nfilter"
}

func ExampleOrigin_AnswerOwed() {
	for o := cancellation.Peer; o <= cancellation.Parent; o++ {
		fmt.Println(o, o.AnswerOwed())
	}
	// Output:
	// peer false
	// disconnect false
	// session_end false
	// timeout true
	// shutdown true
	// parent true
}
