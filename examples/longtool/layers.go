package main

import (
	"context"
	"fmt"
	"time"
)

// What each layer says about a call that was stopped.

func callerLayer(c *call) layer {
	return layer{"caller", []string{
		fmt.Sprintf("its call ended %s after Stop: %q", brief(c.ended.Sub(c.pressed)), c.err),
		"nothing about what was committed, or whether anything still runs",
	}}
}

func wireLayer(s silence) layer {
	if s.id == "" {
		return layer{"wire", []string{"nothing went out: Stop came before the request"}}
	}
	facts := []string{methodCancelled + " went out for request " + s.id}
	known := "it was read"
	if s.closed {
		facts[0] = "the response to request " + s.id + " was closed by the client"
		known = "the server had noticed"
	}
	if s.crossed > 0 {
		facts = append(facts, many(s.crossed, "message", "messages")+" of that request crossed it on the way")
	}
	if s.after == 0 {
		facts = append(facts, "not one message of that request came after "+known)
	} else {
		facts = append(facts, many(s.after, "message", "messages")+" of that request came after "+known)
	}
	if s.ended > 0 {
		facts = append(facts, "the server closed its side "+brief(s.ended)+" after the client")
	}
	if s.posted > 0 {
		facts = append(facts, fmt.Sprintf("%s was POSTed as well and answered %d: in this era it touches nobody",
			methodCancelled, s.posted))
	}
	return layer{"wire", facts}
}

func serverLayer(stop *Stop) layer {
	if stop == nil {
		return layer{"server", []string{"no tool was running when the cancel came: it had ended, or never began"}}
	}
	return layer{"server", []string{
		fmt.Sprintf("asked to stop by %s, with the reason %q", stop.Origin, stop.Reason),
		fmt.Sprintf("the tool noticed after %s, and had returned after %s",
			brief(stop.Observed.Sub(stop.Requested)), brief(stop.Returned.Sub(stop.Requested))),
	}}
}

func ledgerLayer(entries []entry, stop *Stop) layer {
	if len(entries) == 0 {
		return layer{"ledger", []string{"no batch: what was begun, if anything, was rolled back"}}
	}
	last := entries[len(entries)-1]
	facts := []string{many(len(entries), "batch", "batches")}
	switch {
	case stop == nil:
	case committedLate(entries, stop):
		facts = append(facts, fmt.Sprintf("batch %d was committed %s after the cancel came: its commit was shielded, and it is whole",
			last.batch, brief(last.committed.Sub(stop.Requested))))
	default:
		facts = append(facts, fmt.Sprintf("batch %d was committed %s before the cancel came; what was begun after it was interrupted and rolled back",
			last.batch, brief(stop.Requested.Sub(last.committed))))
	}
	return layer{"ledger", facts}
}

// committedLate tells whether the last batch was committed after the cancel came: its shield was met. The
// ledger goes by microseconds, and no batch is committed in the one in which its cancel comes after it.
func committedLate(entries []entry, stop *Stop) bool {
	return stop != nil && len(entries) > 0 && !entries[len(entries)-1].committed.Before(stop.Requested.Truncate(time.Microsecond))
}

// rowCounts are the rows themselves, counted without the ledger's help.
type rowCounts struct {
	closed, owed, delivered int
}

func (db *database) rowsOf(ctx context.Context, operation string) (r rowCounts, err error) {
	err = db.QueryRowContext(ctx, `
		select (select count(*) from postings      where closed_by    = $1),
		       (select count(*) from outbox        where operation_id = $1),
		       (select count(*) from notifications where operation_id = $1)`, operation).Scan(&r.closed, &r.owed, &r.delivered)
	return r, err
}

func (r rowCounts) layer(board size) layer {
	return layer{"database", []string{
		fmt.Sprintf("%s of %s stale postings are closed", thousands(r.closed), thousands(board.stale)),
		fmt.Sprintf("%s notices are owed for them, %s are delivered", thousands(r.owed), thousands(r.delivered)),
	}}
}
