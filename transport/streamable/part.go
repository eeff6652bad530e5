package streamable

import (
	"slices"
	"sync/atomic"

	"github.com/heedmcp/heed/server"
)

// part is the server.Reply of one request of a batch, for what it sends ahead of the
// batch's answer. What is kept of it for a client that is away is void once the request
// is cancelled (H1), while the others' stays.
type part struct {
	stream   *stream     // of the batch; set once
	silenced atomic.Bool // set by Silence
	kept     []span      // its events in the store; guarded by the stream's mu, only appended to by Send
}

// span is the events of a stream from one index up to, but without, another.
type span struct{ from, to int }

// Part implements server.Splitter.
func (st *stream) Part() server.Reply {
	st.mu.Lock()
	defer st.unlock()
	p := &part{stream: st}
	st.parts = append(st.parts, p)
	return p
}

// Send implements server.Reply.
func (p *part) Send(msg []byte) error {
	st := p.stream
	st.mu.Lock()
	defer st.unlock()
	if p.silenced.Load() {
		return errStreamGone
	}
	before := st.events.Load()
	err := st.sendLocked(msg)
	if after := st.events.Load(); after > before {
		p.keep(int(after) - 1) // what came before it began the stream
	}
	return err
}

// keep notes an event in the store.
func (p *part) keep(index int) {
	if n := len(p.kept); n > 0 && p.kept[n-1].to == index {
		p.kept[n-1].to++
		return
	}
	p.kept = append(p.kept, span{index, index + 1})
}

// Answer does nothing: it is the batch's affair.
func (*part) Answer([]byte, int) {}

// Silence implements server.Reply. It must not wait for a Send: nor need it, since
// whatever is written from now on asks whether it is void.
func (p *part) Silence() { p.silenced.Store(true) }

// void tells whether an event of the stream belongs to a cancelled request of its batch.
func (st *stream) void(index int) bool {
	for _, p := range st.parts {
		if p.silenced.Load() && within(p.kept, index) {
			return true
		}
	}
	return false
}

// voided is all that is void of a stream that has ended; nil for most.
func (st *stream) voided() (all []span) {
	for _, p := range st.parts {
		if p.silenced.Load() {
			all = append(all, p.kept...)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	return all
}

// within tells whether one of spans, which are in order, has an index.
func within(spans []span, index int) bool {
	_, found := slices.BinarySearchFunc(spans, index, func(s span, index int) int {
		switch {
		case s.to <= index:
			return -1
		case s.from > index:
			return 1
		}
		return 0
	})
	return found
}
