package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
)

// updatePace is the time between two updates of the watched resource.
const updatePace = 3 * time.Second

func (f *fixture) addSubscriptions() {
	f.server.OnSubscribe(f.subscribe)
}

// subscribe decides on a subscription, and takes its time for those that a tag
// stands in.
func (f *fixture) subscribe(ctx context.Context, _ *servercontext.Request, uri string) error {
	if uri == watchedURI {
		return nil
	}
	escaped, ok := strings.CutPrefix(uri, subscribePrefix)
	tag, err := url.PathUnescape(escaped)
	if !ok || err != nil || tag == "" {
		return server.ResourceNotFound(uri)
	}
	return f.wait(ctx, tag, defaultWait)
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
