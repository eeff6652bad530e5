package server

import (
	"sync"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// receiveBatch takes an array of messages, which only revision 2025-03-26 has.
// Its answers are sent as one array when the last request is settled.
//
// Specification: basic (2025-03-26), batching.
func (ss *Session) receiveBatch(msg []byte, reply Reply, x *Extra, start func(*Call)) {
	ss.mu.Lock()
	allowed := ss.rev != nil && ss.rev.batches
	ss.mu.Unlock()
	elements, fault := jsonrpc.Batch(msg, ss.server.limits)
	if fault == nil && !allowed {
		fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "batches are not part of this protocol revision"}
	}
	if fault != nil {
		refuse(reply, jsonrpc.ID{}, fault.Code, fault.Message, nil)
		return
	}
	b := &batch{to: reply}
	b.add() // held until all elements were taken, so that the array is not sent early
	for element := range elements {
		var m jsonrpc.Message
		fault := jsonrpc.Scan(element, ss.server.limits, &m)
		if m.Kind != jsonrpc.KindRequest && m.Kind != jsonrpc.KindInvalid {
			ss.Accept(&m, fault, discard{}, x, start) // it has no answer, not even when it is malformed
			continue
		}
		if m.Method == methodInitialize && fault == nil {
			fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "initialize must not be part of a batch"}
		}
		b.add()
		r := &batchReply{batch: b}
		if whole, ok := reply.(Splitter); ok {
			r.part = whole.Part()
		}
		ss.Accept(&m, fault, r, x, start)
	}
	b.done(nil)
}

// batch collects the answers of a batch's requests.
type batch struct {
	to Reply

	mu      sync.Mutex // guards the fields below; held while to is called
	open    int        // requests that are not settled, and one for the reading of the batch
	answers []byte     // the array so far, without its end
	ended   bool       // the array, or silence, was given to to; set by done
}

func (b *batch) add() {
	b.mu.Lock()
	b.open++
	b.mu.Unlock()
}

// done notes that one request is settled, with its answer or nil for silence.
func (b *batch) done(answer []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer != nil {
		if len(b.answers) == 0 {
			b.answers = append(b.answers, '[')
		} else {
			b.answers = append(b.answers, ',')
		}
		b.answers = append(b.answers, answer...)
	}
	if b.open--; b.open > 0 {
		return
	}
	b.ended = true
	if len(b.answers) == 0 {
		b.to.Silence()
		return
	}
	b.to.Answer(append(b.answers, ']'), 0)
}

// batchReply is the Reply of one request of a batch.
type batchReply struct {
	batch *batch
	part  Reply // its own part of batch.to; nil: that has none
	once  sync.Once
}

func (r *batchReply) Send(msg []byte) error {
	if r.part != nil {
		return r.part.Send(msg)
	}
	r.batch.mu.Lock()
	defer r.batch.mu.Unlock()
	if r.batch.ended {
		return nil // the request was silenced while it wanted to send, and was the last
	}
	return r.batch.to.Send(msg)
}

func (r *batchReply) Answer(msg []byte, code int) {
	r.once.Do(func() { r.batch.done(msg) })
}

// Silence may be called while another request of the batch is sending, and must
// not wait for it.
func (r *batchReply) Silence() {
	r.once.Do(func() {
		if r.part != nil {
			r.part.Silence()
		}
		go r.batch.done(nil)
	})
}
