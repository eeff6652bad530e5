package contract

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Fixtures are what the tools do by which heedcheck sees what handlers see of a cancel:
// the parts that know no SDK. They look at their context alone, as the SDKs' documentation
// has it.
type Fixtures struct {
	running atomic.Int64 // handlers that have not returned
	mu      sync.Mutex   // guards list
	list    []Event
}

// Event is one thing that happened in a fixture.
type Event struct {
	Tag    string `json:"tag"`
	Event  string `json:"event"`
	Origin string `json:"origin"` // always empty: a context does not say who cancelled it
	Reason string `json:"reason"`
	Step   int    `json:"step"`
	AtNS   int64  `json:"at_ns"`
}

// Arguments and results of the fixtures.
type (
	TagArgs struct {
		Tag string `json:"tag"`
	}
	TimedArgs struct {
		Tag string `json:"tag"`
		MS  int    `json:"ms,omitempty"`
	}
	PollArgs struct {
		Tag    string `json:"tag"`
		Steps  int    `json:"steps,omitempty"`
		StepMS int    `json:"step_ms,omitempty"`
	}
	IgnoreArgs struct {
		Tag string `json:"tag"`
		MS  int    `json:"ms,omitempty"`
		Log bool   `json:"log,omitempty"`
	}
	NestedArgs struct {
		Tag    string `json:"tag"`
		Kind   string `json:"kind"`
		ThenMS int    `json:"then_ms,omitempty"`
	}
	EventQuery struct {
		Tag string `json:"tag,omitempty"`
	}
	EventList struct {
		Events []Event `json:"events"`
	}
	EchoSteps struct {
		Text     string `json:"text"`
		Progress int    `json:"progress,omitempty"`
	}
	Figures struct {
		Goroutines int `json:"goroutines"`
		InFlight   int `json:"in_flight"`
	}
)

// ErrUnrelated is what a fixture fails with whose error is not about its cancel.
var ErrUnrelated = errors.New("the disk is full")

// Done is what fixtures say that come to their end.
const Done = "done"

// Enter counts a handler until leave is called.
func (f *Fixtures) Enter() (leave func()) {
	f.running.Add(1)
	return func() { f.running.Add(-1) }
}

// Figures are those of now.
func (f *Fixtures) Figures() Figures {
	return Figures{Goroutines: runtime.NumGoroutine(), InFlight: int(f.running.Load())}
}

// Add writes down what happens, with the reason if there is one.
func (f *Fixtures) Add(tag, event string, step int, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, Event{Tag: tag, Event: event, Reason: reason, Step: step, AtNS: time.Now().UnixNano()})
}

// Of are the events of a tag, or all when it is empty.
func (f *Fixtures) Of(tag string) EventList {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := EventList{Events: []Event{}}
	for _, e := range f.list {
		if tag == "" || e.Tag == tag {
			found.Events = append(found.Events, e)
		}
	}
	return found
}

// Reason is why a context has ended, empty when it does not say more than that it has.
func Reason(ctx context.Context) string {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return ""
	}
	return cause.Error()
}

// Wait waits for the end of ctx or for ms, of which 0 is a minute.
func (f *Fixtures) Wait(ctx context.Context, tag string, ms int) error {
	f.Add(tag, "started", 0, "")
	return f.WaitOn(ctx, tag, ms)
}

// WaitOn is Wait for what has started before.
func (f *Fixtures) WaitOn(ctx context.Context, tag string, ms int) error {
	if ms == 0 {
		ms = 60_000
	}
	select {
	case <-ctx.Done():
		f.Add(tag, "observed", 0, Reason(ctx))
		return ctx.Err()
	case <-time.After(time.Duration(ms) * time.Millisecond):
		f.Add(tag, "elapsed", 0, "")
		return nil
	}
}

// Until waits for the end of ctx.
func (f *Fixtures) Until(ctx context.Context, tag string) {
	f.Add(tag, "started", 0, "")
	<-ctx.Done()
	f.Add(tag, "observed", 0, Reason(ctx))
}

// Poll looks at ctx between steps, and reports each.
func (f *Fixtures) Poll(ctx context.Context, in PollArgs, report func(step int) error) error {
	f.Add(in.Tag, "started", 0, "")
	for step := range in.Steps {
		if err := ctx.Err(); err != nil {
			f.Add(in.Tag, "stopped", step, Reason(ctx))
			return err
		}
		if err := report(step + 1); err != nil {
			f.Add(in.Tag, "stopped", step, err.Error())
			return err
		}
		time.Sleep(time.Duration(in.StepMS) * time.Millisecond)
	}
	return nil
}

// Ignore works for ms, of which 0 is a second, and reports every 20 ms without looking at
// anything, not even at what comes of the reports.
func (f *Fixtures) Ignore(in IgnoreArgs, report func(done int)) {
	if in.MS == 0 {
		in.MS = 1000
	}
	f.Add(in.Tag, "started", 0, "")
	for done := 20; done < in.MS; done += 20 {
		time.Sleep(20 * time.Millisecond)
		report(done)
	}
	f.Add(in.Tag, "returned", 0, "")
}

// Shield commits in a context that cannot be cancelled, and looks after.
func (f *Fixtures) Shield(ctx context.Context, in TimedArgs) error {
	f.Add(in.Tag, "started", 0, "")
	commit := func(ctx context.Context) {
		f.Add(in.Tag, "entered", 0, "")
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
			f.Add(in.Tag, "committed", 0, "")
		}
	}
	commit(context.WithoutCancel(ctx))
	if err := ctx.Err(); err != nil {
		f.Add(in.Tag, "observed", 0, Reason(ctx))
		return err
	}
	f.Add(in.Tag, "done", 0, "")
	return nil
}

// Hook sits in a blocking read until what runs at the end of ctx closes the connection.
func (f *Fixtures) Hook(ctx context.Context, tag string) error {
	connection, peer := net.Pipe()
	defer peer.Close()
	stop := context.AfterFunc(ctx, func() {
		f.Add(tag, "hook", 0, Reason(ctx))
		connection.Close()
	})
	defer stop()
	f.Add(tag, "started", 0, "")
	_, err := connection.Read(make([]byte, 1))
	return err
}

// Timeout is Wait with a limit of 200 ms.
func (f *Fixtures) Timeout(ctx context.Context, in TimedArgs) error {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	return f.Wait(ctx, in.Tag, in.MS)
}

// Foreign is the error of a context that is not the request's.
func Foreign() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx.Err()
}

// Nested tells what came of a request to the client.
func (f *Fixtures) Nested(ctx context.Context, in NestedArgs, err error) error {
	if err != nil {
		reason := Reason(ctx)
		if ctx.Err() == nil {
			reason = err.Error()
		}
		f.Add(in.Tag, "nested_error", 0, reason)
		return err
	}
	f.Add(in.Tag, "nested_result", 0, "")
	if in.ThenMS > 0 {
		return f.WaitOn(ctx, in.Tag, in.ThenMS)
	}
	return nil
}

// Sequence asks three times in turn.
func (f *Fixtures) Sequence(ctx context.Context, tag string, ask func(context.Context) error) error {
	f.Add(tag, "started", 0, "")
	for step := 1; step <= 3; step++ {
		f.Add(tag, "step", step, "")
		if err := ask(ctx); err != nil {
			f.Add(tag, "nested_error", step, Reason(ctx))
			return err
		}
	}
	return nil
}
