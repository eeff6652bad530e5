package main

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// The states of an operation.
const (
	stateUnknown   = "unknown"   // no call with this id has begun: nothing is committed
	stateRunning   = "running"   // a run holds it right now
	stateStopped   = "stopped"   // begun, not complete, nobody works on it: retry with the same id
	stateCompleted = "completed" // every stale posting is closed, every notice delivered
)

// A Status is what is committed for an operation, whatever any caller believes.
type Status struct {
	OperationID string `json:"operation_id"`
	State       string `json:"state" jsonschema:"enum=unknown,enum=running,enum=stopped,enum=completed"`
	Runs        int    `json:"runs" jsonschema_description:"calls that have worked on it"`
	Total       int    `json:"total" jsonschema_description:"postings that were stale when it began"`
	Batches     int    `json:"batches" jsonschema_description:"batches in the ledger"`
	Closed      int    `json:"closed" jsonschema_description:"postings closed, by the ledger"`
	Notices     int    `json:"notices" jsonschema_description:"notices owed to applicants, by the ledger"`
	Notified    int    `json:"notified" jsonschema_description:"notices delivered"`
}

// status reads the operation's state from the ledger and the outbox.
func (db *database) status(ctx context.Context, operation string) (*Status, error) {
	s := &Status{OperationID: operation}
	from, to := db.alive()
	// One statement, hence one moment.
	err := db.QueryRowContext(ctx, `
		select o.runs, o.total,
		       case when o.completed_at is not null then 'completed'
		            when o.runner is not null and o.lease_until between $2 and $3 then 'running'
		            else 'stopped' end,
		       (select count(*)                   from ledger l where l.operation_id = o.id),
		       (select coalesce(sum(postings), 0) from ledger l where l.operation_id = o.id),
		       (select coalesce(sum(notices), 0)  from ledger l where l.operation_id = o.id),
		       (select count(*) from outbox b where b.operation_id = o.id and b.sent_at is not null)
		from operations o where o.id = $1`, operation, from, to,
	).Scan(&s.Runs, &s.Total, &s.State, &s.Batches, &s.Closed, &s.Notices, &s.Notified)
	if errors.Is(err, sql.ErrNoRows) {
		s.State, err = stateUnknown, nil
	}
	return s, err
}

// settled waits until no run holds the operation, or until wait is over, and
// reads its status then. This is how a caller reconciles after a Stop: the
// call is over for it at once, while the server may still finish a commit.
func (db *database) settled(ctx context.Context, operation string, wait time.Duration) (*Status, error) {
	for start := time.Now(); ; {
		last := time.Since(start) >= wait
		s, err := db.status(ctx, operation)
		if err != nil || s.State != stateRunning || last {
			return s, err
		}
		if err := pause(ctx, leasePoll); err != nil {
			return nil, err
		}
	}
}

// An entry is one line of the ledger.
type entry struct {
	batch, postings, notices int
	committed                time.Time
}

// entries are the operation's batches in order.
func (db *database) entries(ctx context.Context, operation string) ([]entry, error) {
	found, err := db.QueryContext(ctx, `
		select batch, postings, notices, committed_at from ledger where operation_id = $1 order by batch`, operation)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var entries []entry
	for found.Next() {
		var e entry
		var at int64
		if err := found.Scan(&e.batch, &e.postings, &e.notices, &at); err != nil {
			return nil, err
		}
		e.committed = time.UnixMicro(at)
		entries = append(entries, e)
	}
	return entries, found.Err()
}
