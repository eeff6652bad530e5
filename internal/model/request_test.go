package model_test

import (
	"time"

	"github.com/heedmcp/heed/internal/model"
)

// request is one request, as the model and as its client see it.
type request struct {
	tag     int // its own number
	workTag int // that of the request whose handler it goes on with; its own in most cases
	peer    *peer
	id      string
	tool    string
	life    model.Life
	events  []model.Event // since it was last settled
	work    *worker       // nil until its handler has begun
	retried bool          // it goes on with another's handler
	refused bool          // it must be answered with an error of the protocol

	started, cancelled, parked time.Time // since when, for the limits
	left                       time.Time // when stdin ended; zero: not yet, or none

	stream *stream // over HTTP
	blind  bool    // its stream was dropped: nobody reads what comes
	state  string  // requestState that it was answered with
	used   bool    // by a retry
	inputs []string

	// What its client has read.
	answers                      []answer
	reports, questions, retracts int
}

func (r *request) obeys() bool { return r.tool == toolObeys || r.tool == toolLimited }
func (r *request) limited() bool {
	return r.tool == toolLimited || r.tool == toolStubbornLimited
}

// answer is a response that a client has read.
type answer struct {
	fate    model.Fate
	refused bool
	raw     string
}

// question is a request of the server's that a client has read.
type question struct {
	peer *peer
	id   string
	of   *request
	open bool
}
