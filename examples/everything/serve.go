package main

import (
	"context"

	"github.com/heedmcp/heed/transport/stdio"
)

// serve runs the fixture server until its client or ctx has ended.
func serve(ctx context.Context, _ *options) error {
	return stdio.Serve(ctx, newFixture(nil).server, nil)
}
