package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
)

// Invariants of this file. Each has a test named after it.
//
//	T1  A task that has ended never changes.
//	T2  It ends once, after its handler has returned and never before, and what it
//	    ended with is stored before anybody sees it.
//	T3  It is cancelled only if it was asked to stop and its handler has returned
//	    without a value. Work that was done all the same is told as done.
//	T4  It is input_required exactly while questions are open and it was not asked
//	    to stop.
//	T5  A key of a question is never used again in the life of a task.
//	T6  Nobody hears of a task before it is stored.
//
// Lock order: Detached's, then task.saving, then task.mu, then Manager.mu. The store is
// used under task.saving, never under the other two.

// task is a task that this process runs, or will run when its call takes long
// enough.
type task struct {
	manager *Manager
	id      string           // never changed
	o       ToolOptions      // with every field in force; never changed
	work    *server.Detached // set before the work begins; never changed
	due     chan struct{}    // closed by begin: the call is to become a task now
	settled chan struct{}    // closed when it is known whether it did
	lost    atomic.Bool      // another process has taken it over; set by taken

	saving sync.Mutex // serializes the uses of the store, so that the newest is what stays

	mu        sync.Mutex
	record    *Record              // immutable; replaced by change and nowhere else
	open      map[string]*question // questions without an answer, by key; kept by question.go
	begun     bool                 // due is closed
	known     error                // why it is no task, errNotYet, or nil once it is stored; settled is closed with it
	reported  float64              // the greatest progress
	hasReport bool                 // reported is meaningful
	delayed   *time.Timer          // will store progress; nil when there is nothing new
	savedAt   time.Time            // when progress was stored last
	expiry    *time.Timer          // stops the work when its time is over; nil without TTL
	over      bool                 // the handler has returned; set once, by ended
}

var (
	errNotYet    = errors.New("tasks: the call is no task yet")
	errTooMany   = errors.New("tasks: too many tasks are running")
	errUnchanged = errors.New("tasks: nothing has changed")
)

func newTask(m *Manager, r *Record, o ToolOptions) *task {
	return &task{
		manager: m, id: r.ID, o: o, record: r, known: errNotYet,
		due: make(chan struct{}), settled: make(chan struct{}), open: map[string]*question{},
	}
}

// begin asks for the call to become a task, and waits until it has or never will.
func (t *task) begin() error {
	t.mu.Lock()
	if !t.begun {
		t.begun = true
		close(t.due)
	}
	t.mu.Unlock()
	select {
	case <-t.settled:
	case <-t.work.Token().Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

// settle notes whether the call has become a task.
func (t *task) settle(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == errNotYet {
		t.known = err
		close(t.settled)
	}
}

// snapshot is the task as it is now. It must not be changed.
func (t *task) snapshot() *Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record
}

// change is the one place where a task changes. f edits a copy, under mu, and
// returns an error to leave all as it was. A task that has ended is
// not changed (T1).
func (t *task) change(f func(*Record) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.record.Status.Ended() {
		return ErrEnded
	}
	next := t.record.Clone()
	if err := f(next); err != nil {
		return err
	}
	next.Message = bounded(next.Message)
	next.Updated = time.Now()
	if !next.Status.Ended() {
		next.Status = Working
		if len(next.Questions) > 0 && next.Stop == nil {
			next.Status = InputRequired // T4
		}
	}
	t.record = next
	return nil
}

// save stores the task as it is now and tells those that listen.
func (t *task) save() error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	if t.known != nil {
		t.mu.Unlock()
		return nil // it is no task yet
	}
	r := t.record.Clone()
	if t.delayed != nil {
		t.delayed.Stop()
		t.delayed = nil
	}
	t.savedAt = time.Now()
	t.mu.Unlock()
	if r.Status.Ended() {
		return nil // store has seen to that
	}
	r.LeaseUntil = time.Now().Add(t.manager.o.Lease)
	err := t.manager.save(r)
	t.manager.tell(r.ID)
	if errors.Is(err, ErrTaken) {
		t.taken()
	}
	return err
}

// taken ends the work of a task that another run was begun of, here or in another process.
func (t *task) taken() {
	t.lost.Store(true)
	t.work.Cancel(cancellation.Shutdown, "another process has taken the task over")
}

// progress notes how far the work got, unless it is no further than it was. It
// is stored later, with what else has been reported by then.
func (t *task) progress(done, total float64, message string) {
	t.mu.Lock()
	if t.hasReport && done <= t.reported {
		t.mu.Unlock()
		return
	}
	t.reported, t.hasReport = done, true
	t.mu.Unlock()
	t.setMessage(progressText(done, total, message))
}

func progressText(done, total float64, message string) string {
	text := fmt.Sprintf("%g", done)
	if total > 0 {
		text = fmt.Sprintf("%g of %g", done, total)
	}
	if message != "" {
		text += ": " + message
	}
	return text
}

// setMessage changes what people are told about a task that goes on.
func (t *task) setMessage(text string) {
	err := t.change(func(r *Record) error {
		if r.Stop != nil || r.Message == text {
			return errUnchanged // that a stop was requested is what counts now
		}
		r.Message = text
		return nil
	})
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil && t.delayed == nil {
		wait := max(t.manager.o.SaveEvery-time.Since(t.savedAt), 0)
		t.delayed = time.AfterFunc(wait, func() { _ = t.save() })
	}
}

// stop asks the work to stop, with the token like everything else. The task goes
// on until the handler has returned. It reports false when the task is another process's by now.
func (t *task) stop(origin cancellation.Origin, reason string) bool {
	if t.work.Cancel(origin, reason) {
		err := t.change(func(r *Record) error {
			r.Stop = &Stop{Origin: origin.String(), Reason: reason, At: time.Now()}
			r.Message = stopText(t.work.Requested()) + "; the work has not stopped yet"
			r.Questions = nil
			return nil
		})
		if err == nil {
			_ = t.save()
		}
	}
	return !t.lost.Load()
}

// ended is called once the handler has returned: the task's end, or its way to
// another process (T2).
func (t *task) ended(out server.Outcome) {
	defer t.manager.forget(t)
	t.mu.Lock()
	t.over = true
	if t.expiry != nil {
		t.expiry.Stop()
	}
	last := t.record.Clone()
	if t.delayed != nil {
		t.delayed.Stop()
		t.delayed = nil
	}
	t.mu.Unlock()
	last.Questions = nil
	last.Updated = time.Now()
	if t.handsOver(out) {
		last.Status, last.Stop = Working, nil
		last.Message = "the server is shutting down; another one will go on"
		last.Owner, last.LeaseUntil = "", time.Time{} // nobody's: no renewal may take it back
		t.store(last)
		return
	}
	if c := out.Cancelled; c != nil && last.Stop == nil {
		// The handler was faster than whoever asked it to stop, and than the note of that.
		last.Stop = &Stop{Origin: c.Origin.String(), Reason: c.Reason, At: last.Updated}
	}
	conclude(last, out)
	last.Params, last.Responses, last.State = nil, nil, "" // it is not run again
	last.LeaseUntil = time.Time{}
	t.store(last)
}

// handsOver tells whether the work is to be gone on with by the next process.
func (t *task) handsOver(out server.Outcome) bool {
	return t.o.OnRestart == Resume && out.Err != nil && out.Cancelled != nil &&
		out.Cancelled.Origin == cancellation.Shutdown && t.manager.server.Draining()
}

// conclude writes into r how the work ended (T3).
func conclude(r *Record, out server.Outcome) {
	switch cancelled := out.Cancelled; {
	case cancelled != nil && out.Err != nil && cancelled.Origin == cancellation.Peer:
		r.Status, r.Message = Cancelled, bounded(cancelled.Error())
	case out.Fault != nil:
		r.Status, r.Message = Failed, bounded(out.Fault.Message)
		r.Error = encodeFault(out.Fault)
	default:
		r.Status, r.Result = Completed, out.Result
		if cancelled != nil && out.Err != nil {
			r.Message = bounded(cancelled.Error())
		} else if cancelled != nil {
			r.Message = stopText(cancelled) + "; the work was done all the same"
		}
	}
}

func stopText(c *cancellation.Error) string {
	text := "stop requested by " + c.Origin.String()
	if c.Reason != "" {
		text += fmt.Sprintf(": %q", c.Reason)
	}
	return bounded(text)
}

// store stores the task's end, again and again while the store fails, and shows it
// then.
func (t *task) store(last *Record) {
	t.saving.Lock()
	defer t.saving.Unlock()
	var err error
	deadline := time.Now().Add(t.manager.o.SaveFor)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err = t.manager.save(last)
		if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrEnded) || errors.Is(err, ErrTaken) {
			break
		}
		if time.Now().Add(wait).After(deadline) {
			break
		}
		time.Sleep(wait)
	}
	if err != nil {
		t.manager.log().Error("the end of a task could not be stored", "task", last.ID, "tool", last.Tool, "status", string(last.Status), "error", err)
		return
	}
	t.mu.Lock()
	t.record = last
	t.mu.Unlock()
	t.manager.tell(last.ID)
	t.manager.purgeLater(last)
}

// maxMessage bounds the text about a task, in bytes.
const maxMessage = 1000

func bounded(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "…"
}

func encodeFault(fault any) json.RawMessage {
	raw, err := json.Marshal(fault)
	if err != nil {
		return json.RawMessage(`{"code":-32603,"message":"internal error"}`)
	}
	return raw
}

// unusedKey is wanted, or something like it that no question of r was ever called (T5).
func unusedKey(r *Record, wanted string) string {
	key := wanted
	for n := 2; slices.Contains(r.Keys, key); n++ {
		key = fmt.Sprintf("%s~%d", wanted, n)
	}
	return key
}

// storeContext bounds one use of the store.
func (m *Manager) storeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), m.o.StoreTimeout)
}

func (m *Manager) save(r *Record) error {
	ctx, cancel := m.storeContext()
	defer cancel()
	return m.o.Store.Save(ctx, r)
}
