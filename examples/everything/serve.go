package main

import (
	"context"

	"github.com/heedmcp/heed/transport/stdio"
)

// serve runs the fixture server until its client or ctx has ended.
func serve(ctx context.Context, _ *options) error {
	f := newFixture(nil)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go f.update(ctx)
	return stdio.Serve(ctx, f.server, nil)
}
