package main

import (
	"context"
	"database/sql"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// A job closes every stale posting, a batch at a time, and tells the
// applicants. It may be cancelled at any moment, and run again under the same
// operation id until it is complete:
//
//   - a batch is one transaction that writes the postings, the notices that
//     are owed and the ledger: all of it or nothing;
//   - a slow statement runs under the token's context and is interrupted;
//   - the commit is shielded: a cancel that comes then waits for its end;
//   - what an earlier run committed is found in the database, not in memory.
type job struct {
	db        *database
	operation string
	staleDays int
	batch     int
	// delay makes each batch take time, so that there is something to watch
	// and to interrupt: three quarters in the statement, one in the commit.
	delay time.Duration
	// report says how far the job got, in postings. Its error ends the job.
	report func(ctx context.Context, done float64, total int, phase string) error
}

// The phases of a batch, as the job reports them.
const (
	phaseCommitting = "committing"
	phaseClosed     = "closed"
)

// run works until every stale posting is closed and every notice delivered, or
// until ctx is cancelled; then its error is the cancellation's.
func (j *job) run(ctx context.Context) (*Status, error) {
	l, err := j.db.acquire(ctx, j.operation, j.staleDays)
	if err != nil {
		return nil, cause(ctx, err)
	}
	if !l.completed {
		defer l.release(ctx)
		if err := j.work(ctx, l); err != nil {
			return nil, cause(ctx, err)
		}
	}
	status, err := j.db.status(ctx, j.operation)
	return status, cause(ctx, err)
}

func (j *job) work(ctx context.Context, l *lease) error {
	// An earlier run may have been stopped between a commit and its notices.
	if err := l.deliver(ctx); err != nil {
		return err
	}
	before, err := j.db.status(ctx, j.operation)
	if err != nil {
		return err
	}
	closed := before.Closed
	// region loop
	for batch := before.Batches + 1; ; {
		if err := cancellation.Checkpoint(ctx); err != nil {
			return err
		}
		n, err := j.closeBatch(ctx, l, batch, closed)
		if err != nil {
			return err
		}
		if n > 0 {
			batch++
			closed += n
			if err := j.report(ctx, float64(closed), l.total, phaseClosed); err != nil {
				return err
			}
			if err := l.deliver(ctx); err != nil {
				return err
			}
			continue
		}
		// Nothing closed: all is done, or another operation was faster.
		left, err := j.left(ctx)
		if err != nil {
			return err
		}
		if left == 0 {
			return cancellation.Shield(ctx, l.complete)
		}
	}
	// endregion
}

// closeBatch closes the next postings in one transaction. It closed none when
// it returns 0 or an error.
func (j *job) closeBatch(ctx context.Context, l *lease, batch, closed int) (n int, err error) {
	tx, err := j.db.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := l.hold(ctx, tx); err != nil {
		return 0, err
	}
	n, err = j.closePostings(ctx, tx, batch)
	if err != nil || n == 0 {
		return 0, err
	}
	notices, err := affected(tx.ExecContext(ctx, `
		insert into outbox (operation_id, batch, applicant_id)
		select p.closed_by, p.closed_batch, a.id from postings p join applicants a on a.posting_id = p.id
		where p.closed_by = $1 and p.closed_batch = $2`, j.operation, batch))
	if err != nil {
		return 0, err
	}
	// region commit
	// From here on a cancel is accepted, and waits until the commit is through.
	// One that was accepted before is returned here, and nothing is committed.
	err = cancellation.Shield(ctx, func(ctx context.Context) error {
		if err := j.report(ctx, float64(closed)+float64(n)*3/4, l.total, phaseCommitting); err != nil {
			return err
		}
		if err := pause(ctx, j.delay/4); err != nil {
			return err
		}
		if err := l.hold(ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			insert into ledger (operation_id, batch, postings, notices, committed_at) values ($1, $2, $3, $4, $5)`,
			j.operation, batch, n, notices, micros(j.db.now()))
		if err != nil {
			return err
		}
		return tx.Commit()
	})
	// endregion
	if err != nil {
		return 0, err
	}
	return n, nil
}

// closePostings is the slow statement: it takes its share of the delay for
// each posting.
func (j *job) closePostings(ctx context.Context, tx *sql.Tx, batch int) (int, error) {
	each := j.delay.Seconds() * 3 / 4 / float64(j.batch)
	n, err := affected(tx.ExecContext(ctx, `
		with next as materialized (
			select id from postings where status = 'open' and age_days >= $4 order by id limit $5 `+j.db.forUpdate()+`)
		update postings
		set closings = closings + 1, closed_by = $1, closed_batch = $2,
		    status = case when pg_sleep($3) is null then status else 'closed' end
		where id in (select id from next)`,
		j.operation, batch, each, j.staleDays, j.batch))
	return int(n), err
}

func (j *job) left(ctx context.Context) (n int, err error) {
	err = j.db.QueryRowContext(ctx, `select count(*) from postings where status = 'open' and age_days >= $1`,
		j.staleDays).Scan(&n)
	return n, err
}

// region cause

// cause is the reason why err happened. A driver whose statement was
// interrupted says so in its own words; the token knows who asked and why.
func cause(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cancelled := cancellation.Checkpoint(ctx); cancelled != nil {
		return cancelled
	}
	return err
}

// endregion

// pause waits for d, or for less when ctx ends: then it returns why.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return cancellation.Checkpoint(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cancellation.Checkpoint(ctx)
	}
}
