package tasks

import (
	"time"

	"github.com/heedmcp/heed/server"
)

// ID is the extension's id.
const ID = "io.modelcontextprotocol/tasks"

// Support says when a call of a tool becomes a task.
type Support uint8

const (
	// Never: the tool is always answered itself. It is the default.
	Never Support = iota
	// WhenPossible: calls of clients that know tasks may become one; others are
	// answered as if there were no tasks.
	WhenPossible
	// Always: each call ends in a task. Clients that do not know tasks are refused
	// with -32021.
	Always
)

// Restart says what becomes of a task whose process has died, or was shut down.
type Restart uint8

const (
	// Fail marks it as failed, and says why. It is the default.
	Fail Restart = iota
	// Resume calls its handler again, with the same arguments and the same [Task.ID],
	// by which the handler finds what it has done before.
	Resume
)

// ToolOptions are what the extension should know of one tool. [Tool] makes
// them part of its registration.
type ToolOptions struct {
	Support Support

	// After is how long a call may take before it becomes a task; whatever is
	// answered by then was none. 0: what [Options.After] says; negative: the call
	// becomes a task before its handler begins, also when it will ask for input at once.
	After time.Duration

	// TTL is how long a task is kept, from its creation; then it is forgotten, and stopped
	// with origin Timeout if it still runs. 0: what [Options.TTL] says; negative: for ever.
	TTL time.Duration

	// Poll is how often clients should ask. 0: what [Options.Poll] says.
	Poll time.Duration

	// Timeout limits the work of a task, from when it became one. The limits of
	// [server.ToolOptions] are those of requests and end with them. 0: no limit.
	Timeout time.Duration

	// OnRestart says what becomes of a task whose process has died.
	OnRestart Restart
}

// Tool returns the options for the registration of a tool; further fields may be
// set:
//
//	server.AddTool(s, tool, handler, tasks.Tool(tasks.ToolOptions{Support: tasks.WhenPossible}))
func Tool(o ToolOptions) *server.ToolOptions {
	return &server.ToolOptions{Extensions: map[string]any{ID: &o}}
}

// Options configure the extension. A nil *Options, like the zero value, is the
// default; every field says what its zero means.
type Options struct {
	// Store keeps the tasks; nil: [NewMemory](0, 0).
	Store Store

	// Owner names this process among those that share the store. A process that is
	// started again under the name of one that died takes over its tasks at once; others
	// wait until the lease is over. "": a random name.
	Owner string
	// Lease is how long a task counts as run by a process that was not heard of. It
	// is renewed, and signals of other processes are looked for, three times as
	// often. 0: 15 s.
	Lease time.Duration

	// After is how long a call may take before it becomes a task. 0: 100 ms.
	After time.Duration
	// TTL is how long a task is kept, from its creation. Set it longer than the
	// longest task may take. 0: 24 hours; negative: for ever.
	TTL time.Duration
	// Poll is how often clients should ask for a task. 0: one second; negative: it
	// is not said.
	Poll time.Duration

	// MaxRunning bounds the tasks that this process runs at once; a call that
	// would exceed it is answered itself, or refused if its tool is Always a
	// task. 0: 16384; negative: no bound.
	MaxRunning int

	// SaveEvery is how often progress of a task is stored and told to those that
	// listen; who asks gets the newest. Whatever else happens to a task is stored at
	// once. 0: one second.
	SaveEvery time.Duration
	// StoreTimeout bounds each use of the store. 0: 10 s.
	StoreTimeout time.Duration
	// SaveFor is for how long the end of a task is tried to be stored, when the
	// store fails. 0: one minute.
	SaveFor time.Duration
}

const (
	defaultLease        = 15 * time.Second
	defaultAfter        = 100 * time.Millisecond
	defaultTTL          = 24 * time.Hour
	defaultPoll         = time.Second
	defaultMaxRunning   = 16384
	defaultSaveEvery    = time.Second
	defaultStoreTimeout = 10 * time.Second
	defaultSaveFor      = time.Minute
)

// withDefaults returns a copy in which every field holds what is in force.
func (o *Options) withDefaults() Options {
	var p Options
	if o != nil {
		p = *o
	}
	if p.Store == nil {
		p.Store = NewMemory(0, 0)
	}
	if p.Owner == "" {
		p.Owner = newID()
	}
	orDefault(&p.Lease, defaultLease)
	orDefault(&p.SaveEvery, defaultSaveEvery)
	orDefault(&p.StoreTimeout, defaultStoreTimeout)
	orDefault(&p.SaveFor, defaultSaveFor)
	if p.After == 0 {
		p.After = defaultAfter
	}
	if p.TTL == 0 {
		p.TTL = defaultTTL
	}
	if p.Poll == 0 {
		p.Poll = defaultPoll
	}
	if p.MaxRunning == 0 {
		p.MaxRunning = defaultMaxRunning
	}
	return p
}

func orDefault(d *time.Duration, standard time.Duration) {
	if *d <= 0 {
		*d = standard
	}
}

// forTool returns the options of one tool with every field in force.
func (o *Options) forTool(t *ToolOptions) ToolOptions {
	p := *t
	if p.After == 0 {
		p.After = o.After
	}
	if p.TTL == 0 {
		p.TTL = o.TTL
	}
	if p.Poll == 0 {
		p.Poll = o.Poll
	}
	p.TTL, p.Poll, p.Timeout = max(p.TTL, 0), max(p.Poll, 0), max(p.Timeout, 0)
	if p.TTL > 0 {
		p.TTL = max(p.TTL, time.Millisecond)
	}
	return p
}
