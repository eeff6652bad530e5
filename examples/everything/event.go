package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The words for what the cancellation fixtures do. Clients look for them.
const (
	eventStarted      = "started"       // a handler waits or works from now on
	eventObserved     = "observed"      // it has seen its token fire
	eventElapsed      = "elapsed"       // its time was over first
	eventStopped      = "stopped"       // it stopped between two steps
	eventReturned     = "returned"      // it came to its end without having looked
	eventHook         = "hook"          // a hook of its token ran
	eventEntered      = "entered"       // it is inside of its shield
	eventCommitted    = "committed"     // it is about to leave its shield
	eventDone         = "done"          // it came to its end without a cancel
	eventNestedError  = "nested_error"  // a call to the client has failed
	eventNestedResult = "nested_result" // a call to the client was answered
	eventStep         = "step"          // the next call to the client follows
)

// maxEvents bounds the list; the oldest half makes way for new ones.
const maxEvents = 1 << 16

// event is one thing that happened in a cancellation fixture.
type event struct {
	Tag    string `json:"tag" jsonschema_description:"the call's own tag"`
	Event  string `json:"event" jsonschema_description:"what happened"`
	Origin string `json:"origin" jsonschema_description:"who cancelled, empty without a cancel"`
	Reason string `json:"reason" jsonschema_description:"why, or the text of another error"`
	Step   int    `json:"step" jsonschema_description:"how many steps were done, or which one follows"`
	AtNS   int64  `json:"at_ns" jsonschema_description:"when, in nanoseconds since 1970"`
}

// events is the list of what happened, in order.
type events struct {
	mu   sync.Mutex
	list []event // guarded by mu; only add writes it
}

// add appends an event. err is why, nil when there is no reason to give.
func (e *events) add(tag, word string, step int, err error) {
	origin, reason := describe(err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.list) >= maxEvents {
		e.list = slices.Delete(e.list, 0, len(e.list)/2)
	}
	e.list = append(e.list, event{
		Tag: tag, Event: word, Origin: origin, Reason: reason, Step: step, AtNS: time.Now().UnixNano(),
	})
}

// describe takes an error apart into origin and reason.
func describe(err error) (origin, reason string) {
	var cancelled *cancellation.Error
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &cancelled):
		return cancelled.Origin.String(), cancelled.Reason
	}
	return "", err.Error()
}

// of returns the events of a tag, or all when tag is "".
func (e *events) of(tag string) []event {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := []event{} // never nil: clients get [] then, not null
	for _, one := range e.list {
		if tag == "" || one.Tag == tag {
			found = append(found, one)
		}
	}
	return found
}

type eventQuery struct {
	Tag string `json:"tag,omitempty" jsonschema_description:"only events of this tag; without it, all"`
}

type eventList struct {
	Events []event `json:"events"`
}

func (f *fixture) addEvents() {
	server.MustAddTool(f.server, &mcp.Tool{
		Name:        "cancel_events",
		Description: "Lists what the cancellation fixtures have done, in order.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, _ *servercontext.Request, in eventQuery) (eventList, error) {
		return eventList{Events: f.events.of(in.Tag)}, nil
	})
}
