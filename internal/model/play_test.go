package model_test

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/model"
)

// ids are few, so that requests, cancels and answers of all clients meet.
var ids = []string{"1", `"1"`, "2", `"a"`, "9007199254740993"}

// waits are as long as what there is to wait for.
var waits = []time.Duration{0, time.Millisecond, 30 * time.Millisecond, limit, 600 * time.Millisecond, grace, 6 * time.Second, 12 * time.Second}

// play does one step.
func (w *world) play(s step) {
	w.steps++
	w.log("-- %v", s)
	p := w.peers[int(s.A)%len(w.peers)]
	id := ids[int(s.B)%len(ids)]
	switch s.Act {
	case actCall:
		w.call(p, id, []string{toolObeys, toolStubborn, toolLimited, toolStubbornLimited, toolObeys, toolStubborn}[int(s.C)%6])
	case actCancel:
		// Most ids are nobody's: every other cancel is for a request that there is, parked ones first.
		if s.C%2 == 0 {
			r := w.chosen(s.B%2, func(r *request) bool { return r.life.Phase == model.Parked && slices.Contains(w.peers, r.peer) })
			if r == nil {
				r = w.chosen(s.B, func(r *request) bool { return slices.Contains(w.peers, r.peer) })
			}
			if r != nil {
				p, id = r.peer, r.id
			}
		}
		w.cancel(p, id)
	case actOrder:
		if r := w.chosen(s.A, func(r *request) bool { return r.work != nil && r.work.of == r && r.life.Phase == model.Running }); r != nil {
			w.order(r, []order{orderValue, orderValue, orderFailure, orderForeign, orderPanic, orderReport, orderReport, orderReport, orderAsk, orderAsk, orderAsk}[int(s.C)%11])
		}
	case actAnswer:
		w.mu.Lock()
		questions := slices.Clone(w.questions)
		w.mu.Unlock()
		if n := len(questions); n > 0 {
			q := questions[n-1-int(s.B)%min(n, 4)]
			to := q.peer
			if s.C%4 == 0 {
				to = p // of another session, with an id that may be its own
			}
			w.answer(to, q.id)
		}
	case actDrop:
		if r := w.chosen(s.A, func(r *request) bool { return r.stream != nil && !r.blind && !r.life.Settled() && !r.refused }); r != nil {
			w.drop(r)
		}
	case actResume:
		if r := w.chosen(s.A, func(r *request) bool {
			return r.blind && r.peer.kind == httpSession && slices.Contains(w.peers, r.peer)
		}); r != nil {
			w.resume(r)
		}
	case actRetry, actReplay:
		replay := s.Act == actReplay
		if r := w.chosen(s.A, func(r *request) bool { return r.state != "" && (replay || !r.used) }); r != nil {
			w.retry(r, w.peers[[]kind{stdioStateless, httpStateless}[s.B%2]], ids[int(s.C)%len(ids)])
		}
	case actEnd:
		if p.kind != httpStateless {
			w.end(int(p.kind))
		}
	case actOperator:
		if r := w.chosen(s.A, func(r *request) bool { return !r.refused && r.life.Phase <= model.Running }); r != nil {
			w.operator(r)
		}
	case actWait:
		w.advance(waits[int(s.A)%len(waits)])
	}
	if s.Settle {
		w.settle()
	}
}

// chosen is one of the newest requests for which it holds.
func (w *world) chosen(n uint8, holds func(*request) bool) *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var some []*request
	for _, r := range slices.Backward(w.requests) {
		if holds(r) {
			if some = append(some, r); len(some) > int(n) {
				break
			}
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[int(n)%len(some)]
}

// holds tells whether a request has its id now; it settles what is not decided yet.
func (w *world) holds(r *request) bool {
	if r == nil || r.refused {
		return false
	}
	if slices.ContainsFunc(r.events, func(e model.Event) bool { return e.Kind != model.Cancel || e.Cause != model.Peer }) {
		w.settle()
	}
	l := r.life
	for _, e := range r.events { // cancels come in the order of the wire
		l = l.After(e)
	}
	return l.HoldsID()
}

func (w *world) call(p *peer, id, tool string) {
	r := &request{peer: p, id: id, tool: tool}
	if p.kind != httpStateless && w.holds(p.holder[id]) {
		r.refused = true
	}
	r.tag = len(w.requests) + 1
	r.workTag = r.tag
	if at, early := p.early[id]; early && !r.refused {
		delete(p.early, id)
		if time.Since(at) <= earlyLife {
			r.life = r.life.After(cancelBy(model.Peer)) // it must never begin
			p.finished[id] = true
		}
	}
	w.mu.Lock()
	w.requests = append(w.requests, r)
	if !r.refused {
		p.holder[id] = r
	}
	w.mu.Unlock()
	p.send(r, nil)
	if p.kind.http() || r.refused {
		synctest.Wait() // POSTs have no order among themselves; and whoever has the id may be about to return
	}
}

func (w *world) cancel(p *peer, id string) {
	if r := p.holder[id]; p.kind != httpStateless {
		switch {
		case w.holds(r), r != nil && r.life.Phase == model.Parked:
			r.events = append(r.events, cancelBy(model.Peer))
		case p.kind == httpSession && !w.finished(p, id):
			p.early[id] = time.Now()
		}
	}
	p.notify(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"r"}}`, id))
	if p.kind.http() {
		synctest.Wait()
	}
}

// finished tells whether a request has had the id and given it back.
func (w *world) finished(p *peer, id string) bool {
	if r := p.holder[id]; r != nil && len(r.events) > 0 {
		w.settle()
	}
	return p.finished[id]
}

func (w *world) order(r *request, o order) {
	if slices.ContainsFunc(r.events, func(e model.Event) bool { return e.Kind == model.Ask || e.Kind == model.Answer }) {
		w.settle()
	}
	w.mu.Lock()
	busy := r.work.asking || r.work.done
	w.mu.Unlock()
	if busy || r.life.Phase != model.Running && r.life.Phase != model.Parked || len(r.work.orders) > 4 {
		return
	}
	if o == orderAsk && r.peer.kind.stateless() {
		w.park(r)
		return
	}
	if o == orderAsk && r.blind && !w.resumable(r) {
		return // it would get an error at once: there is nowhere to ask
	}
	w.log("   tag %d: order %d", r.tag, o)
	r.work.orders <- o
	switch o {
	case orderValue:
		r.events = append(r.events, model.Event{Kind: model.Return})
	case orderFailure, orderForeign, orderPanic:
		r.events = append(r.events, model.Event{Kind: model.Return, Failed: true})
	case orderReport:
		r.events = append(r.events, model.Event{Kind: model.Report})
	case orderAsk:
		r.events = append(r.events, model.Event{Kind: model.Ask})
	}
}

func (w *world) resumable(r *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.stream != nil && r.stream.last != ""
}

// settleInput is how long the server gathers questions before it asks them.
const settleInput = time.Millisecond

// park has a handler ask a client that cannot be sent requests.
func (w *world) park(r *request) {
	w.settle()
	for at, _ := w.due(); !w.failed() && at != nil && time.Until(*at) <= 2*settleInput; at, _ = w.due() {
		w.advance(2 * settleInput)
	}
	if r.life.Phase != model.Running || w.failed() {
		return
	}
	w.log("   tag %d: asks", r.tag)
	r.work.orders <- orderAsk
	r.events = append(r.events, model.Event{Kind: model.Park})
	r.parked = time.Now().Add(settleInput)
	time.Sleep(2 * settleInput)
	w.settle()
}

// answer has a client answer a question with that id, if it was asked one.
func (w *world) answer(p *peer, id string) {
	if p.kind.stateless() || !slices.Contains(w.peers, p) {
		return
	}
	w.mu.Lock()
	fresh := slices.ContainsFunc(w.questions, func(q *question) bool { return q.peer == p && q.id == id && q.open && !q.of.life.Asking })
	w.mu.Unlock()
	if fresh {
		w.settle() // the model has not seen yet that it was asked
	}
	w.mu.Lock()
	for _, q := range w.questions {
		if q.peer == p && q.id == id && q.open && q.of.life.Asking {
			q.open = false
			q.of.events = append(q.of.events, model.Event{Kind: model.Answer})
		}
	}
	w.mu.Unlock()
	p.notify(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}}`, id))
}

// drop closes the response to a request. Its handshake-era client may come back for it.
func (w *world) drop(r *request) {
	w.settle()
	if r.life.Settled() {
		return
	}
	w.log("   tag %d: its response is dropped", r.tag)
	r.blind = true
	if r.peer.kind == httpStateless {
		r.events = append(r.events, cancelBy(model.Disconnect))
	}
	w.mu.Lock()
	drop := r.stream.drop
	w.mu.Unlock()
	drop()
	w.settle()
}

func (w *world) resume(r *request) {
	w.settle()
	if r.life.Fate == model.Silent {
		// Nothing of it is replayed: what it has read is all that it ever will have.
		r.life.Reports, r.life.Questions, r.life.Retracts = r.reports, r.questions, r.retracts
	}
	if r.peer.resume(r) {
		r.blind = false
		w.settle()
	}
}

// retry brings the input that r was answered with a request for.
func (w *world) retry(r *request, p *peer, id string) {
	w.settle()
	running := 0
	for _, other := range w.requests {
		if other.life.HoldsSlot() {
			running++
		}
	}
	if w.slots > 0 && running >= w.slots || p.kind != httpStateless && w.holds(p.holder[id]) {
		return
	}
	w.mu.Lock()
	again := &request{tag: len(w.requests) + 1, workTag: r.workTag, peer: p, id: id, tool: r.tool, retried: true, refused: true, started: time.Now()}
	if r.life.Phase == model.Parked && r.life.Cause == model.Nobody && !r.used {
		again.refused = false
		again.work = r.work
		again.work.of = again
		again.life = again.life.After(model.Event{Kind: model.Start})
		r.events = append(r.events, model.Event{Kind: model.Resume})
	}
	r.used = true
	inputs := map[string]any{}
	for _, name := range r.inputs {
		inputs[name] = map[string]any{"role": "assistant", "model": "m", "content": map[string]any{"type": "text", "text": "yes"}}
	}
	w.requests = append(w.requests, again)
	p.holder[id] = again
	state := r.state
	w.mu.Unlock()
	p.send(again, map[string]any{"inputResponses": inputs, "requestState": state})
	w.settle()
}

// end ends the session of a client and gives it another.
func (w *world) end(i int) {
	w.settle()
	p := w.peers[i]
	cause := model.Disconnect
	if p.kind.http() {
		cause = model.SessionEnd
	}
	for _, r := range w.requests {
		mine := r.peer == p || r.life.Phase == model.Parked && w.requests[r.workTag-1].peer == p
		if !mine || r.refused {
			continue
		}
		if r.life.Fate == model.Open && (r.life.Cause.Owed() || r.life.Asking && !p.kind.http()) {
			r.blind = true // whoever is owed an answer has left
		}
		if !p.kind.http() {
			r.left = time.Now()
		}
		r.events = append(r.events, cancelBy(cause))
	}
	p.end()
	synctest.Wait()
	w.peers[i] = w.connect(p.kind, i)
	w.settle()
}

// operator cancels what an operator can name: requests by their session's id and their own.
func (w *world) operator(r *request) {
	synctest.Wait() // the server knows of what was sent
	for _, other := range w.requests {
		if other.peer.session == r.peer.session && other.id == r.id && !other.refused && slices.Contains(w.peers, other.peer) && other.life.Phase <= model.Running {
			other.events = append(other.events, cancelBy(model.Shutdown))
		}
	}
	w.log("   tag %d: an operator cancels it", r.tag)
	w.s.Cancel(r.peer.session, r.id, "an operator wants it")
}

// due is when something happens by itself, and to whom.
func (w *world) due() (*time.Time, func()) {
	var first *time.Time
	var happens []func()
	note := func(at time.Time, r *request, e model.Event) {
		if first == nil || at.Before(*first) {
			first, happens = &at, nil
		}
		if at.Equal(*first) {
			happens = append(happens, func() { r.events = append(r.events, e) })
		}
	}
	for _, r := range w.requests {
		l := r.life
		switch {
		case r.refused:
		case l.Phase == model.Running && l.Cause == model.Nobody && r.limited():
			note(r.started.Add(limit), r, cancelBy(model.Timeout))
		case l.Phase == model.Running && l.Fate == model.Open && l.Cause.Owed():
			at := r.cancelled.Add(grace)
			if !r.left.IsZero() && r.left.Add(lastWords).Before(at) {
				at = r.left.Add(lastWords)
			}
			note(at, r, model.Event{Kind: model.Overdue})
		case l.Phase == model.Parked && l.Cause == model.Nobody:
			note(r.parked.Add(parkTimeout), r, cancelBy(model.Timeout))
		}
	}
	return first, func() {
		for _, f := range happens {
			f()
		}
	}
}

// advance lets time go by, and stops wherever something happens by itself.
func (w *world) advance(d time.Duration) {
	until := time.Now().Add(d)
	w.settle()
	for !w.failed() {
		at, happens := w.due()
		if at == nil || at.After(until) {
			break
		}
		happens()
		time.Sleep(time.Until(*at))
		w.settle()
	}
	time.Sleep(time.Until(until))
	w.settle()
}
