package main

import (
	"context"
	"time"

	"github.com/heedmcp/heed/servercontext"
)

// updatePace is the time between two updates of the watched resource.
const updatePace = 3 * time.Second

func (f *fixture) addSubscriptions() {
	f.server.OnSubscribe(f.subscribe) // after the cancellation fixtures have set theirs
}

// subscribe decides on a subscription. The cancellation fixtures take their time for
// those that a tag stands in.
func (f *fixture) subscribe(ctx context.Context, req *servercontext.Request, uri string) error {
	if uri == watchedURI {
		return nil
	}
	return f.cancellation.Subscribe(ctx, req, uri)
}

// update tells the subscribers of the watched resource, again and again until
// ctx ends, that it has changed.
func (f *fixture) update(ctx context.Context) {
	ticker := time.NewTicker(updatePace)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.server.ResourceUpdated(watchedURI)
		case <-ctx.Done():
			return
		}
	}
}
