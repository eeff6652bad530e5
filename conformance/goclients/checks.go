package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The first revisions that have something.
const (
	sinceElicitation = "2025-06-18"
	sincePriming     = "2025-11-25" // streams can be resumed from their beginning
)

var checks = []check{
	{name: "revision", run: agreesOnTheRevision},
	{name: "list", run: lists},
	{name: "echo", run: echoes},
	{name: "progress", run: reportsProgress},
	{name: "nested_sampling", run: asks("sampling", "sampling")},
	{name: "nested_roots", run: asks("roots", "roots")},
	{name: "nested_elicitation", run: asks("elicitation_form", "elicitation"), since: sinceElicitation},
	{name: "cancel_wait", run: cancels("cancel_wait", map[string]any{"ms": 60_000}, "observed"), cancels: true},
	{name: "cancel_poll", run: cancelsBetweenSteps, cancels: true},
	{name: "cancel_ignore", run: cancels("cancel_ignore", map[string]any{"ms": 400}, "returned"), cancels: true},
	{name: "cancel_error", run: cancels("cancel_error", nil, "observed"), cancels: true},
	{name: "cancel_panic", run: cancels("cancel_panic", nil, "observed"), cancels: true},
	{name: "cancel_one_of_many", run: cancelsOneOfMany, cancels: true},
	{name: "cancel_while_nested", run: cancelsWhileNested, era: "handshake", cancels: true},
	{name: "give_up_while_nested", run: givesUpWhileNested, era: "stateless", cancels: true},
	{name: "cancel_after_nested", run: cancelsAfterNested, cancels: true},
	{name: "cancel_unsaid", run: givesUpUnheard, silent: true},
	{name: "lose_and_resume", run: resumes, era: "handshake", transport: "http", resuming: true},
	{name: "come_back_later", run: comesBackWhenTold, era: "handshake", transport: "http", since: sincePriming},
	{name: "session_lives", run: worksAsOnTheFirstDay},
}

func agreesOnTheRevision(v *visit) error {
	if v.revision() != v.target.revision {
		return fmt.Errorf("agreed on %s, want %s", v.revision(), v.target.revision)
	}
	return nil
}

func lists(v *visit) error {
	names, err := v.tools(v)
	for _, name := range []string{"cancel_events", "cancel_nested", "cancel_poll", "cancel_wait", "echo"} {
		if err == nil && !slices.Contains(names, name) {
			err = fmt.Errorf("%s is not among %v", name, names)
		}
	}
	return err
}

func echoes(v *visit) error {
	for _, text := range []string{"hello", "", " padded ", "line\nline\r\n\u2028\"\\", "☃ 𝄞", strings.Repeat("x", 200_000)} {
		got, err := v.must("echo", map[string]any{"text": text}, nil)
		if err != nil {
			return err
		}
		if got != text {
			return fmt.Errorf("echo of %.80q is %.80q", text, got)
		}
	}
	return nil
}

// steps collects progress reports.
type steps struct {
	mu   sync.Mutex
	list []float64
}

func (s *steps) add(done float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, done)
}

func (s *steps) are(want ...float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Equal(s.list, want)
}

func reportsProgress(v *visit) error {
	var seen steps
	if _, err := v.must("cancel_poll", map[string]any{"tag": tag("progress"), "steps": 4, "step_ms": 100}, seen.add); err != nil {
		return err
	}
	// Clients may deliver notifications and results on different goroutines.
	return v.soon("each report, in order", func() (bool, error) { return seen.are(1, 2, 3, 4), nil })
}

func asks(kind, question string) func(*visit) error {
	return func(v *visit) error {
		name, before := tag(kind), v.answers().asked(question)
		if _, err := v.must("cancel_nested", map[string]any{"tag": name, "kind": kind}, nil); err != nil {
			return err
		}
		if n := v.answers().asked(question) - before; n != 1 && (question != "roots" || v.countsRoots()) {
			return fmt.Errorf("the client was asked %d times", n)
		}
		_, err := v.event(name, "nested_result")
		return err
	}
}

// cancels is the check that a tool's cancel arrives, and that nothing follows.
func cancels(tool string, arguments map[string]any, last string) func(*visit) error {
	return func(v *visit) error {
		name := tag(tool)
		call := v.start(tool, with(arguments, "tag", name), nil)
		if _, err := v.event(name, "started"); err != nil {
			return err
		}
		if err := call.cancel(); err != nil {
			return err
		}
		e, err := v.event(name, last)
		if err == nil && last == "observed" {
			err = v.seen(e)
		}
		return errors.Join(err, v.alive())
	}
}

func with(arguments map[string]any, key string, value any) map[string]any {
	all := map[string]any{key: value}
	for k, v := range arguments {
		all[k] = v
	}
	return all
}

func cancelsBetweenSteps(v *visit) error {
	return errors.Join(v.inTime(300*time.Millisecond, v.cancelsAfterTwoSteps, "it goes on for more than three steps"), v.alive())
}

// cancelsAfterTwoSteps cancels a call after two of its steps. It reports whether no more than three
// followed.
func (v *visit) cancelsAfterTwoSteps(step time.Duration) (soon bool, err error) {
	name := tag("poll")
	second := make(chan struct{})
	call := v.start("cancel_poll", map[string]any{"tag": name, "steps": 1000, "step_ms": step.Milliseconds()}, func(done float64) {
		if done == 2 {
			close(second)
		}
	})
	select {
	case <-second:
	case <-call.ended:
	}
	if err := call.cancel(); err != nil {
		return false, err
	}
	e, err := v.event(name, "stopped")
	if err != nil {
		return false, err
	}
	if e.Step < 2 {
		return false, fmt.Errorf("stopped at step %d", e.Step)
	}
	return e.Step <= 5, v.seen(e)
}

func cancelsOneOfMany(v *visit) error {
	return v.inTime(700*time.Millisecond, v.cancelsBeside, "the other call is over before the cancel")
}

// cancelsBeside cancels one of two calls, of which the other takes so long. It reports whether that was
// still running.
func (v *visit) cancelsBeside(lasts time.Duration) (meanwhile bool, err error) {
	stays, goes := tag("stays"), tag("goes")
	type answer struct {
		text string
		err  error
	}
	survivor := make(chan answer, 1)
	go func() {
		text, err := v.must("cancel_wait", map[string]any{"tag": stays, "ms": lasts.Milliseconds()}, nil)
		survivor <- answer{text, err}
	}()
	call := v.start("cancel_wait", map[string]any{"tag": goes, "ms": 60_000}, nil)
	for _, name := range []string{stays, goes} {
		if _, err := v.event(name, "started"); err != nil {
			return false, err
		}
	}
	if err := call.cancel(); err != nil {
		return false, err
	}
	observed, err := v.event(goes, "observed")
	if err != nil {
		return false, err
	}
	if a := <-survivor; a.err != nil || a.text != "done" {
		return false, fmt.Errorf("the other call returned %q, %w", a.text, a.err)
	}
	elapsed, err := v.event(stays, "elapsed")
	if err != nil {
		return false, err
	}
	return elapsed.AtNS > observed.AtNS, v.seen(observed)
}

// cancelsWhileNested cancels a call whose server waits for the client's answer.
func cancelsWhileNested(v *visit) error {
	name := tag("nested")
	asked, freed, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	defer close(over) // an answer that nobody waits for any more
	v.answers().replace("sampling", func(ctx context.Context) error {
		close(asked)
		select {
		case <-ctx.Done():
			close(freed)
			return ctx.Err()
		case <-over:
			return nil
		}
	})
	call := v.start("cancel_nested", map[string]any{"tag": name, "kind": "sampling"}, nil)
	select {
	case <-asked:
	case <-call.ended:
	}
	if err := call.cancel(); err != nil {
		return err
	}
	e, err := v.event(name, "nested_error")
	if err != nil {
		return err
	}
	if v.told() {
		err = v.soon("the nested request is cancelled", func() (bool, error) {
			select {
			case <-freed:
				return true, nil
			default:
				return false, nil
			}
		})
	}
	v.errors().forgive("context canceled") // of clients whose answer is part of the call
	return errors.Join(err, v.seen(e), v.alive())
}

// givesUpWhileNested cancels a call between its two rounds: the server hears nothing of it.
func givesUpWhileNested(v *visit) error {
	var call *running
	begun := make(chan struct{})
	v.answers().replace("sampling", func(ctx context.Context) error {
		<-begun
		call.abort()
		<-ctx.Done()
		return ctx.Err()
	})
	call = v.start("cancel_nested", map[string]any{"tag": tag("given-up"), "kind": "sampling"}, nil)
	close(begun)
	return errors.Join(call.givenUp(), v.alive())
}

func cancelsAfterNested(v *visit) error {
	name := tag("continued")
	call := v.start("cancel_nested", map[string]any{"tag": name, "kind": "sampling", "then_ms": 60_000}, nil)
	if _, err := v.event(name, "nested_result"); err != nil {
		return err
	}
	if err := call.cancel(); err != nil {
		return err
	}
	e, err := v.event(name, "observed")
	if err != nil {
		return err
	}
	return errors.Join(v.seen(e), v.alive())
}

// givesUpUnheard is about clients that forget a call and tell nobody: it goes on to its end, and
// the answer disturbs nobody.
func givesUpUnheard(v *visit) error {
	name := tag("unsaid")
	asked, answer := make(chan struct{}), make(chan struct{})
	v.answers().replace("sampling", func(ctx context.Context) error {
		close(asked)
		select {
		case <-answer:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	call := v.start("cancel_nested", map[string]any{"tag": name, "kind": "sampling"}, nil)
	select {
	case <-asked:
	case <-call.ended:
	}
	if err := call.cancel(); err != nil {
		return err
	}
	close(answer)
	_, err := v.event(name, "nested_result")
	return errors.Join(err, v.alive())
}

// resumes loses the connection of a call, which cancels nothing: the client comes back for
// every report that it has missed, each once, and for the result.
func resumes(v *visit) error {
	var seen steps
	before := v.connections().resumed()
	if _, err := v.must("cancel_poll", map[string]any{"tag": tag("lost"), "steps": 5, "step_ms": 100}, func(done float64) {
		seen.add(done)
		if done == 2 {
			v.connections().lose()
		}
	}); err != nil {
		return err
	}
	if v.connections().resumed() == before {
		return errors.New("the client did not come back, so nothing was tried")
	}
	return v.soon("each report, once", func() (bool, error) { return seen.are(1, 2, 3, 4, 5), nil })
}

// comesBackWhenTold is about a stream that the server ends because the answer takes time.
func comesBackWhenTold(v *visit) error {
	before := v.connections().resumed()
	if _, err := v.must("test_reconnection", nil, nil); err != nil {
		return err
	}
	if v.connections().resumed() == before {
		return errors.New("the stream was not closed, so nothing was tried")
	}
	return nil
}

func worksAsOnTheFirstDay(v *visit) error {
	return errors.Join(lists(v), reportsProgress(v), asks("sampling", "sampling")(v))
}
