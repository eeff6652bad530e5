package streamable

import (
	"context"
)

// Shutdown ends the handler's work and the server's: new requests are answered
// 503, the streams that clients listen on end, running requests get the server's
// drain grace and are then cancelled with origin Shutdown, and the sessions are
// ended. It returns nil once no handler runs any more, and the server's
// *server.DrainError when ctx ends first. Further calls wait for the first and
// return what it did.
//
// It is called before http.Server.Shutdown, which waits for what this ends.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.draining.Store(true)
	first := false
	h.shutdown.Do(func() { first = true })
	if first {
		defer close(h.drained)
		h.drainErr = h.drain(ctx)
		return h.drainErr
	}
	select {
	case <-h.drained:
		return h.drainErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Handler) drain(ctx context.Context) error {
	for _, s := range h.table.all() {
		s.listener.leave()
	}
	err := h.server.Drain(ctx)
	h.endSessions()
	return err
}

// Close ends the sessions and all their streams at once, without a grace for
// what is running, and refuses new requests. Requests of the stateless era end
// with their connections. It returns nil.
func (h *Handler) Close() error {
	h.draining.Store(true)
	h.endSessions()
	return nil
}

func (h *Handler) endSessions() {
	for _, s := range h.table.close() {
		s.end(endShutdown)
	}
}
