package server

import (
	"maps"
	"slices"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
)

// Where operations are found: by the id in a sealed state, by the request id they were
// parked for, and by their session, whose end or drain is theirs. That is the session
// of the request that attends, or did last: a retry takes the operation along.

// park keeps op for its retry. It reports false when there are too many already.
func (s *Server) park(op *operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.MaxParked >= 0 && len(s.parked) >= s.options.MaxParked {
		return false
	}
	s.parked[op.id] = op
	return true
}

func (s *Server) unpark(op *operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parked, op.id)
}

func (s *Server) parkedOperation(id string) *operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked[id]
}

// takes makes op one of the session's operations.
func (ss *Session) takes(op *operation) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	put(&ss.operations, op, struct{}{})
}

// gives notes that op's handler has returned, or that another session took op.
func (ss *Session) gives(op *operation) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.operations, op)
	ss.wakeLocked()
}

// lingers counts handlers that were cancelled while they were parked.
func (ss *Session) lingers(n int) {
	ss.mu.Lock()
	ss.lingering += n
	ss.mu.Unlock()
	ss.server.counters.lingering.Add(int64(n))
}

// keepsOutcome notes that op's handler has returned while it was parked.
func (ss *Session) keepsOutcome(op *operation) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	put(&ss.untold, op, struct{}{})
}

// parkedFor notes the id that op was parked for, so that a cancel of it ends op.
// Scopes without ids keep none.
func (ss *Session) parkedFor(id jsonrpc.ID, op *operation) {
	if ss.scope {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	put(&ss.parked, id.Clone(), op)
}

func (ss *Session) unparked(op *operation) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.untold, op)
	for id, other := range ss.parked {
		if other == op {
			delete(ss.parked, id)
		}
	}
}

// cancelParked ends the operation that was parked for id, if there is one.
func (ss *Session) cancelParked(id jsonrpc.ID, reason string) bool {
	ss.mu.Lock()
	op := ss.parked[id]
	ss.mu.Unlock()
	if op == nil {
		return false
	}
	op.end(ss, 0, cancellation.Peer, reason)
	return true
}

// endOperations ends what is parked in the session, or is being parked right now: that
// one asked whether it may while it held its lock, and end waits for that.
func (ss *Session) endOperations(origin cancellation.Origin, reason string) {
	ss.mu.Lock()
	all := slices.AppendSeq(make([]*operation, 0, len(ss.operations)+len(ss.untold)), maps.Keys(ss.operations))
	all = slices.AppendSeq(all, maps.Keys(ss.untold))
	ss.mu.Unlock()
	for _, op := range all {
		op.end(ss, 0, origin, reason)
	}
}

// endAwaited ends the operation that c was to resume, when c was cancelled while it
// waited for its turn: stopping a retry stops what it continues (P2).
func (c *Call) endAwaited(cancelled *cancellation.Error) {
	if !c.method.input || !c.rev.stateless {
		return
	}
	state, err := c.openRetry()
	if err != nil || state == nil {
		return
	}
	if op := c.server.parkedOperation(state.Operation); op != nil {
		op.end(nil, state.Round, cancelled.Origin, cancelled.Reason)
	}
}

// unattended describes the handlers that run without a request: they were parked
// and then cancelled.
func (ss *Session) unattended() []InFlight {
	var all []InFlight
	for _, op := range ss.snapshotOperations() {
		op.mu.Lock()
		alone, last := op.lingers && !op.over, op.last
		op.mu.Unlock()
		if alone {
			f := last.describe()
			f.Accepted, f.Cancelled = op.first.accepted, op.source.Requested()
			all = append(all, f)
		}
	}
	return all
}

// snapshotOperations lists the operations whose handlers run.
func (ss *Session) snapshotOperations() []*operation {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Keys(ss.operations))
}
