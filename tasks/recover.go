package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Recover takes over the tasks of processes that have died or were shut down: as
// each tool has chosen ([ToolOptions.OnRestart]), they are run again or marked as
// failed. It is to be called once, when all tools are registered and before
// requests are served; from then on the manager looks for such tasks by itself. Tasks of
// a process that is only believed to be dead are found when its lease is over.
//
// It returns how many tasks are resumed and how many are marked as failed or cancelled,
// and an error when the store fails, or [server.ErrDraining].
func (m *Manager) Recover(ctx context.Context) (resumed, ended int, err error) {
	if m.server.Draining() {
		return 0, 0, server.ErrDraining
	}
	if err := m.o.Store.Release(ctx, m.o.Owner); err != nil {
		return 0, 0, err
	}
	resumed, ended, err = m.claim(ctx)
	m.mu.Lock()
	m.recovering = true
	m.armLocked()
	m.schedulePurgeLocked(time.Now().Add(purgeEvery))
	m.mu.Unlock()
	return resumed, ended, err
}

// claim takes over as many tasks as there is room for.
func (m *Manager) claim(ctx context.Context) (resumed, ended int, err error) {
	for {
		limit := claimAtOnce
		if m.o.MaxRunning > 0 {
			limit = min(limit, m.o.MaxRunning-m.Running())
		}
		if limit <= 0 {
			return resumed, ended, nil
		}
		now := time.Now()
		claimed, err := m.o.Store.Claim(ctx, m.o.Owner, now, now.Add(m.o.Lease), limit)
		if err != nil {
			return resumed, ended, err
		}
		for _, r := range claimed {
			if t := m.running(r.ID); t != nil {
				t.taken() // its lease was over, and with it that run
			}
			if m.takeOver(r) {
				resumed++
			} else {
				ended++
			}
		}
		if len(claimed) < limit {
			return resumed, ended, nil
		}
	}
}

// takeOver goes on with a task, or ends it. It reports whether the task goes on.
func (m *Manager) takeOver(r *Record) bool {
	_, said := m.server.RegisteredTool(r.Tool, ID)
	o, _ := said.(*ToolOptions)
	r.Questions = nil
	switch {
	case r.Stop != nil:
		// Its process has died, and the work with it.
		return m.endLost(r, func() {
			r.Status, r.Message = Cancelled, stopText(&cancellation.Error{Origin: originOf(r.Stop.Origin), Reason: r.Stop.Reason})+"; its process has ended"
		})
	case r.TTL > 0 && !time.Now().Before(r.Expires()):
		return m.endLost(r, func() { lost(r, "the time to live is over") })
	case o == nil || o.Support == Never:
		return m.endLost(r, func() { lost(r, "the server was restarted and does not have the tool any more") })
	case o.OnRestart == Fail:
		return m.endLost(r, func() { lost(r, "the server was restarted while the task was running") })
	}
	if err := m.resume(r, m.o.forTool(o)); err != nil {
		if errors.Is(err, server.ErrDraining) {
			r.Owner, r.LeaseUntil = "", time.Time{} // for somebody else
			if err := m.save(r); err != nil {
				m.log().Error("a task could not be given back", "task", r.ID, "error", err)
			}
			return false
		}
		return m.endLost(r, func() { lost(r, "the task could not be resumed: "+err.Error()) })
	}
	return true
}

// resume runs a task's handler again.
func (m *Manager) resume(r *Record, o ToolOptions) error {
	o.TTL = r.TTL // as it was announced
	t := newTask(m, r, o)
	t.begun = true
	close(t.due)
	t.settle(nil)
	r.Message = fmt.Sprintf("resumed (run %d)", r.Run)
	x := &server.Extra{}
	if r.Principal != "" {
		x.TokenInfo = &auth.TokenInfo{UserID: r.Principal} // all that is known of who asked
	}
	var nobody servercontext.Host
	work, err := m.server.Revive(withTask(context.Background(), t), server.Revival{
		Params: r.Params, Responses: r.Responses, State: r.State, Version: r.Version, Extra: x,
	}, t.detachment(&nobody))
	if err != nil {
		return err
	}
	t.work = work
	m.mu.Lock()
	m.tasks[t.id] = t // there was room when it was claimed
	m.mu.Unlock()
	t.limit()
	work.Start()
	if err := t.change(func(*Record) error { return nil }); err == nil {
		_ = t.save()
	}
	m.arm()
	m.log().Info("task resumed", "tool", r.Tool, "run", r.Run)
	return nil
}

// endLost ends a task whose work is lost.
func (m *Manager) endLost(r *Record, conclude func()) bool {
	conclude()
	r.Params, r.Responses, r.State = nil, nil, ""
	r.Updated, r.LeaseUntil = time.Now(), time.Time{}
	if err := m.save(r); err != nil && !errors.Is(err, ErrEnded) {
		m.log().Error("the end of a task could not be stored", "tool", r.Tool, "error", err)
		return false
	}
	m.tell(r.ID)
	m.purgeLater(r)
	m.log().Warn("task ended with the process that ran it", "tool", r.Tool, "status", string(r.Status), "reason", r.Message)
	return false
}

// lost marks r as failed.
func lost(r *Record, why string) {
	r.Status, r.Message = Failed, bounded(why)
	r.Error = encodeFault(&sdkrpc.Error{
		Code: sdkrpc.CodeInternalError, Message: bounded(why),
		Data: []byte(`{"origin":"` + cancellation.Shutdown.String() + `"}`),
	})
}
