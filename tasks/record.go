package tasks

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/heedmcp/heed/server"
)

// Status is the state of a task, in the words of the protocol.
//
// Specification: extension io.modelcontextprotocol/tasks, task status.
type Status string

// The states of a task. The last three are its end: no task leaves them.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed" // its result is there, also one that reports an error of the tool
	Failed        Status = "failed"    // it ended with a JSON-RPC error
	Cancelled     Status = "cancelled" // it was asked to stop, and has stopped
)

// Ended tells whether a task in this state has come to its end.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Cancelled }

// Record is all that is known about a task, as a [Store] keeps it. Stores need
// not understand more of it than ID, Owner, Run, LeaseUntil, Expires and Status.
type Record struct {
	// ID is the task's: 128 random bits, as text. It is the operation id as
	// well, the same however often the task is run.
	ID string `json:"id"`
	// Principal is who has started the task and may ask for it; "" where the transport
	// has no authorization.
	Principal string `json:"principal,omitempty"`
	// Tool is the tool that was called.
	Tool string `json:"tool"`

	Status  Status    `json:"status"`
	Message string    `json:"message,omitempty"` // for people
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// TTL is how long the task is kept, counted from Created; 0: for ever.
	TTL time.Duration `json:"ttl,omitempty"`
	// Poll is how often clients should ask for it.
	Poll time.Duration `json:"poll,omitempty"`

	// Result is what the call would have been answered; set when Completed.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the JSON-RPC error; set when Failed.
	Error json.RawMessage `json:"error,omitempty"`

	// Questions wait for the client's answers; not empty exactly when InputRequired.
	Questions map[string]server.InputRequest `json:"questions,omitempty"`
	// Keys were ever used for a question. None is used twice.
	Keys []string `json:"keys,omitempty"`
	// Stop is why the task was asked to stop; nil while it was not.
	Stop *Stop `json:"stop,omitempty"`

	// Params and Version are those of the call, to run it again; Responses and State what
	// its last round of input has brought.
	Params    json.RawMessage            `json:"params,omitempty"`
	Version   string                     `json:"version,omitempty"`
	Responses map[string]json.RawMessage `json:"responses,omitempty"`
	State     string                     `json:"state,omitempty"`

	// Owner is the manager that runs the task, until LeaseUntil unless it renews
	// that. Run counts how often it was begun, from 1.
	Owner      string    `json:"owner,omitempty"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	Run        int       `json:"run"`
}

// Stop is a request to stop.
type Stop struct {
	// Origin is where it came from, as cancellation.Origin prints itself.
	Origin string    `json:"origin"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Expires is when the task may be forgotten; zero: never.
func (r *Record) Expires() time.Time {
	if r.TTL <= 0 {
		return time.Time{}
	}
	return r.Created.Add(r.TTL)
}

// Expired tells whether the task is not kept any more at that time. One that
// has not ended is kept as long as it takes.
func (r *Record) Expired(at time.Time) bool {
	return r.Status.Ended() && r.TTL > 0 && !at.Before(r.Expires())
}

// Clone returns a copy that shares nothing that is ever changed.
func (r *Record) Clone() *Record {
	c := *r
	c.Questions = maps.Clone(r.Questions)
	c.Keys = slices.Clone(r.Keys)
	c.Responses = maps.Clone(r.Responses)
	if r.Stop != nil {
		stop := *r.Stop
		c.Stop = &stop
	}
	return &c
}

// Size is about what the record takes in memory, in bytes.
func (r *Record) Size() int {
	n := 1024 + len(r.Message) + len(r.Params) + len(r.Result) + len(r.Error) + len(r.State)
	for key, q := range r.Questions {
		n += len(key) + len(q.Params)
	}
	for key, raw := range r.Responses {
		n += len(key) + len(raw)
	}
	return n
}
