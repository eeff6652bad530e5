package server

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
)

// ListenField is a member that an extension adds to the filter of
// subscriptions/listen.
type ListenField struct {
	// Name is the member's.
	Name string
	// Open is called for each subscription of a client that declares the
	// extension, before it is acknowledged. asked is what the client wrote there.
	// An error refuses the subscription.
	//
	// changed says that the subscriber is to be told of key; it may be called by any
	// goroutine, also before Open has returned, and never blocks. What a subscriber
	// has not been told yet is kept once per key.
	Open func(ctx context.Context, req *servercontext.Request, asked json.RawMessage, changed func(key string)) (*Listening, error)
}

// Listening is what an extension does for one subscription.
type Listening struct {
	// Granted is what the acknowledgement says under the field's name; nil leaves
	// it out.
	Granted any
	// Tell returns the notification that tells of key as it is now; params is an
	// object. An empty method sends nothing.
	Tell func(ctx context.Context, key string) (method string, params json.RawMessage)
	// Stop is called once, when the subscription has ended.
	Stop func()
}

// listening is a field of one subscription.
type listening struct {
	*Listening
	name string

	mu      sync.Mutex          // guards changed; no lock is taken while it is held
	changed map[string]struct{} // keys to be told of; set by note, cleared by take
}

// openFields opens the fields that the client asked for.
func (c *Call) openFields(ctx context.Context, sub *subscription) error {
	asked, _ := jsonrpc.Get(c.params.all, "notifications")
	for _, id := range slices.Sorted(maps.Keys(c.reg.extensions)) {
		for _, field := range c.reg.extensions[id].Listen {
			raw, ok := jsonrpc.Get(asked, field.Name)
			if !ok {
				continue
			}
			if err := requireExtension(c.request, id); err != nil {
				return err
			}
			l := &listening{name: field.Name}
			opened, err := field.Open(ctx, c.request, raw, func(key string) {
				l.mu.Lock()
				put(&l.changed, key, struct{}{})
				l.mu.Unlock()
				sub.rouse()
			})
			if err != nil {
				return err
			}
			l.Listening = opened
			sub.fields = append(sub.fields, l)
		}
	}
	return nil
}

// closeFields ends what openFields has opened.
func (sub *subscription) closeFields() {
	for _, l := range sub.fields {
		if l.Stop != nil {
			l.Stop()
		}
	}
}

// acknowledged is what the acknowledgement says, the fields of extensions included.
func (sub *subscription) acknowledged() ([]byte, error) {
	b, err := appendJSON(nil, sub.filter)
	if err != nil {
		return nil, err
	}
	o := &object{b: bytes.TrimSuffix(b, []byte("}")), begun: len(b) > len("{}")}
	for _, l := range sub.fields {
		if l.Granted != nil {
			if err := o.value(l.name, l.Granted); err != nil {
				return nil, err
			}
		}
	}
	return o.end(), nil
}

// flush tells the client of what has changed.
func (l *listening) flush(ctx context.Context, c *Call) error {
	l.mu.Lock()
	changed := l.changed
	l.changed = nil
	l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		method, params := l.Tell(ctx, key)
		if method == "" {
			continue
		}
		var more []byte // its members
		if inner := bytes.TrimSuffix(bytes.TrimPrefix(params, []byte("{")), []byte("}")); len(inner) > 0 {
			more = append([]byte{','}, inner...)
		}
		if err := c.notifySubscriber(method, more); err != nil {
			return err
		}
	}
	return nil
}
