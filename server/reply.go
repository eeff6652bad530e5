package server

import "github.com/heedmcp/heed/internal/jsonrpc"

// Reply is where the messages of one request go. Transports implement it; the
// server calls it.
//
// The server calls Send and Answer one at a time. Silence may be called while
// a Send is running, from the goroutine that read the cancel, and must not
// block. Exactly one of Answer and Silence is called for every request, and
// nothing after it; the one exception is a Send that was already running when
// Silence was called.
//
// msg is one JSON-RPC message without line breaks. It is only valid during the call.
type Reply interface {
	// Send writes a notification or a nested request that belongs to the
	// request, ahead of its answer. An error means that the stream is gone.
	Send(msg []byte) error

	// Answer writes the response and ends the request's stream. code is 0
	// for a result, else the JSON-RPC error code, from which HTTP derives its status.
	Answer(msg []byte, code int)

	// Silence ends the request's stream without a response, because the request was
	// cancelled.
	Silence()
}

// Splitter is a [Reply] that can tell the requests of a batch apart, of a transport that
// queues what it is given: what waits of a request that is cancelled can then be taken
// back while the others' stays.
type Splitter interface {
	Reply
	// Part returns where the messages of one request of the batch go. Only its Send and
	// Silence are called; neither ends the batch. It is called while the batch is read.
	Part() Reply
}

// discard is the Reply of what nobody may be told about.
type discard struct{}

func (discard) Send([]byte) error  { return nil }
func (discard) Answer([]byte, int) {}
func (discard) Silence()           {}

// refuse answers a request that was not accepted.
func refuse(to Reply, id jsonrpc.ID, code int, message string, data []byte) {
	buf := getBuffer()
	*buf = jsonrpc.AppendError(*buf, id, code, message, data)
	to.Answer(*buf, code)
	putBuffer(buf)
}
