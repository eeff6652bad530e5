package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// visit is one check's use of the session.
type visit struct {
	context.Context
	session
	target   *target
	patience time.Duration
}

var tags atomic.Int64

// tag is a name for events that no other client of the server uses.
func tag(name string) string { return fmt.Sprintf("%s-go-%d-%d", name, os.Getpid(), tags.Add(1)) }

// fixtureEvent is an event that the server's fixtures have recorded.
type fixtureEvent struct {
	Event, Origin, Reason string
	Step                  int
	AtNS                  int64 `json:"at_ns"`
}

// event waits until the server has recorded an event for a tag.
func (v *visit) event(tag, name string) (*fixtureEvent, error) {
	var seen []fixtureEvent
	err := v.soon(fmt.Sprintf("event %s of %s", name, tag), func() (bool, error) {
		r, err := v.call(v, "cancel_events", map[string]any{"tag": tag}, nil)
		if err != nil {
			return false, err
		}
		var list struct{ Events []fixtureEvent }
		if len(r.structured) > 0 {
			err = json.Unmarshal(r.structured, &list)
		} else { // revisions before structured content carry it as text
			err = json.Unmarshal([]byte(r.text), &list)
		}
		seen = list.Events
		return find(seen, name) != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("%w; events: %+v", err, seen)
	}
	return find(seen, name), nil
}

func find(events []fixtureEvent, name string) *fixtureEvent {
	for i := range events {
		if events[i].Event == name {
			return &events[i]
		}
	}
	return nil
}

// soon asks until the answer is yes.
func (v *visit) soon(what string, done func() (bool, error)) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(v.patience); ; <-ticker.C {
		ok, err := done()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case ok:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("not within %v: %s", v.patience, what)
		}
	}
}

// inTime tries something that a busy machine may be too slow for, with more and more time.
func (v *visit) inTime(d time.Duration, try func(time.Duration) (bool, error), what string) error {
	for ; ; d *= 3 {
		ok, err := try(d)
		switch {
		case err != nil || ok:
			return err
		case 3*d > v.patience:
			return errors.New(what)
		}
	}
}

// must calls a tool that must succeed.
func (v *visit) must(tool string, arguments map[string]any, progress func(float64)) (string, error) {
	r, err := v.call(v, tool, arguments, progress)
	if err == nil && r.isError {
		err = fmt.Errorf("%s failed: %s", tool, r.text)
	}
	if err != nil {
		return "", err
	}
	return r.text, nil
}

// running is a call that is going to be cancelled.
type running struct {
	v      *visit
	tool   string
	abort  context.CancelFunc
	ended  chan struct{} // closed when the client has given the call up
	result *result       // written before ended is closed
	err    error         // the same
}

// start begins a call that is going to be cancelled.
func (v *visit) start(tool string, arguments map[string]any, progress func(float64)) *running {
	ctx, abort := context.WithCancel(v)
	r := &running{v: v, tool: tool, abort: abort, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.result, r.err = v.call(ctx, tool, arguments, progress)
	}()
	return r
}

// cancel cancels the call and waits until the client has given it up.
func (r *running) cancel() error {
	r.abort()
	return r.givenUp()
}

func (r *running) givenUp() error {
	select {
	case <-r.ended:
	case <-time.After(r.v.patience):
		return fmt.Errorf("%s is not given up", r.tool)
	}
	switch {
	case r.err == nil:
		return fmt.Errorf("%s was answered: %+v", r.tool, r.result)
	case !errors.Is(r.err, context.Canceled):
		return fmt.Errorf("%s failed for another reason than its cancel: %w", r.tool, r.err)
	}
	return nil
}

// seen fails unless the server saw the cancel of a call as this client's.
func (v *visit) seen(e *fixtureEvent) error {
	origin, reason := v.cancelled()
	if e.Origin != origin || e.Reason != reason {
		return fmt.Errorf("the server saw a cancel by %s, reason %q; want %s, %q", e.Origin, e.Reason, origin, reason)
	}
	return nil
}

// alive gives a late message of a cancelled call the time to arrive, and fails if the session
// does not answer any more.
func (v *visit) alive() error {
	for i := range 3 {
		want := fmt.Sprintf("still here %d", i)
		if text, err := v.must("echo", map[string]any{"text": want}, nil); err != nil || text != want {
			return fmt.Errorf("after the cancel: echo returned %q, %w", text, err)
		}
	}
	return nil
}
