package server

import (
	"context"

	"github.com/heedmcp/heed/servercontext"
)

// RootsHook is called when a client says that its roots have changed. It may ask
// for the new ones with [servercontext.Request.ListRoots].
type RootsHook func(ctx context.Context, req *servercontext.Request)

// OnRootsChanged has hook called when a client of the handshake era says that its
// roots have changed; nil takes it away. It is called in the order of the
// session's other notifications and carries a token that fires when the session ends.
//
// Specification: client/roots (2025-11-25).
func (s *Server) OnRootsChanged(hook RootsHook) {
	s.change(func(r *registry) { r.hooks.roots = hook })
}

func handleRootsChanged(ctx context.Context, req *servercontext.Request) (any, error) {
	if hook := callFrom(ctx).reg.hooks.roots; hook != nil {
		hook(ctx, req)
	}
	return nil, nil
}
