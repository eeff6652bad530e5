package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// runner runs the checks one after another against one session.
type runner struct {
	client   string // for the verdicts
	target   *target
	patience time.Duration
	encoder  *json.Encoder
	failed   bool // written by judge
}

// verdict is a line of the output.
type verdict struct {
	Client string `json:"client"`
	Era    string `json:"era"`
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Error  string `json:"error,omitempty"`
	Millis int64  `json:"ms"`
}

// run reports whether all verdicts are ok.
func (r *runner) run(open func(context.Context, *target) (session, error)) bool {
	var s session
	r.judge("connect", 6*r.patience, func(ctx context.Context) (err error) {
		s, err = open(ctx, r.target)
		return err
	})
	if s == nil {
		return false
	}
	for _, c := range checks {
		if c.wanted(r.target, s) {
			r.judge(c.name, 6*r.patience, func(ctx context.Context) error {
				before := len(s.errors().all())
				err := c.run(&visit{Context: ctx, session: s, target: r.target, patience: r.patience})
				return errors.Join(err, complained(s, before))
			})
		}
	}
	r.judge("close", closeWithin, func(context.Context) error { return s.close() })
	r.judge("quiet", r.patience, func(context.Context) error { return complained(s, 0) })
	return !r.failed
}

// complained is an error if the client has complained since there were so many complaints.
func complained(s session, before int) error {
	if list := s.errors().all(); len(list) > before {
		return fmt.Errorf("the client reported: %s", strings.Join(list[before:], "; "))
	}
	return nil
}

// closeWithin is longer than the clients take to end a server that does not end by itself.
const closeWithin = time.Minute

func (r *runner) judge(check string, within time.Duration, run func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	start := time.Now()
	err := bounded(ctx, run)
	v := verdict{Client: r.client, Era: r.target.era(), Check: check, OK: err == nil, Millis: time.Since(start).Milliseconds()}
	if err != nil {
		r.failed = true
		v.Error = err.Error()
	}
	if err := r.encoder.Encode(v); err != nil {
		panic(err) // nobody reads what this program is there to say
	}
}

// bounded ends a check whose client hangs in spite of its context.
func bounded(ctx context.Context, run func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(time.Second):
		return errors.New("the client hangs")
	}
}

// check is one expectation.
type check struct {
	name      string
	run       func(*visit) error
	era       string // the only one that has it; "" for both
	transport string // the same
	cancels   bool   // only for clients that tell the server of a cancel
	silent    bool   // only for the others
	resuming  bool   // only for clients that come back to a stream that broke off
	since     string // the first revision that has it
}

func (c *check) wanted(t *target, s session) bool {
	transport := "http"
	if t.url == "" {
		transport = "stdio"
	}
	return slices.Contains([]string{"", t.era()}, c.era) && slices.Contains([]string{"", transport}, c.transport) &&
		(!c.cancels || s.stops()) && (!c.silent || !s.stops()) && (!c.resuming || s.resumes()) && t.revision >= c.since && (t.only == nil || slices.Contains(t.only, c.name))
}
