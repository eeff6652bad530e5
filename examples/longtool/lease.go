package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	// leaseTime is how long a holder is believed alive after its last sign of
	// life. It decides only how soon a retry may take over from a process that
	// died. That two calls never write at once is held by hold, whatever the
	// clocks say: they may jump, and differ between servers.
	leaseTime = 4 * time.Second
	// leasePatience is how long a retry waits for the call before it to end, or
	// for the lease of a dead one to run out.
	leasePatience = 10 * time.Second
	leasePoll     = 20 * time.Millisecond
)

var (
	errBusy     = errors.New("this operation is being run by another call")
	errTakeover = errors.New("another call has taken this operation over")
	errMismatch = errors.New("this operation id was used with another stale_days before")
)

// A lease is the right to write for one operation. At most one exists at any
// time, on however many servers: it is a row in the operations table.
type lease struct {
	db        *database
	operation string
	staleDays int
	runner    string
	total     int
	completed bool // before this call: there is nothing to do, and no lease
}

// acquire makes the operation if it is new and takes the right to run it. When
// an earlier call still holds that right, because it is finishing its last
// batch, say, acquire waits for it.
func (db *database) acquire(ctx context.Context, operation string, staleDays int) (*lease, error) {
	l := &lease{db: db, operation: operation, staleDays: staleDays, runner: rand.Text()}
	for start := time.Now(); ; {
		last := time.Since(start) > leasePatience // however long a try takes, the last begins after that
		err := l.try(ctx)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, errBusy):
			l.release(ctx) // whatever became of the commit
			return nil, err
		case last:
			return nil, err
		}
		if err := pause(ctx, leasePoll); err != nil {
			return nil, err
		}
	}
}

func (l *lease) try(ctx context.Context) error {
	tx, err := l.db.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, `
		insert into operations (id, stale_days, total)
		select $1, $2, (select count(*) from postings where status = 'open' and age_days >= $2)
		on conflict (id) do nothing`, l.operation, l.staleDays)
	if err != nil {
		return err
	}
	// The update takes the row's lock, so two calls cannot both see it free.
	from, to := l.db.alive()
	taken, err := affected(tx.ExecContext(ctx, `
		update operations set runner = $1, lease_until = $2, runs = runs + 1
		where id = $3 and stale_days = $4 and completed_at is null
		and (runner is null or lease_until < $5 or lease_until > $6)`,
		l.runner, l.db.leaseEnd(), l.operation, l.staleDays, from, to))
	if err != nil {
		return err
	}
	var staleDays int
	err = tx.QueryRowContext(ctx, `select stale_days, total, completed_at is not null from operations where id = $1`,
		l.operation).Scan(&staleDays, &l.total, &l.completed)
	switch {
	case err != nil:
		return err
	case staleDays != l.staleDays:
		return fmt.Errorf("%w (%d)", errMismatch, staleDays)
	case !l.completed && taken == 0:
		return errBusy
	}
	return commit(ctx, tx)
}

// region hold

// hold is the first statement of every transaction that works under the lease,
// and the last of one that takes long. It fails if another call took over, and
// until the transaction ends it keeps the row locked, so that none can.
func (l *lease) hold(ctx context.Context, tx *sql.Tx) error {
	held, err := affected(tx.ExecContext(ctx, `update operations set lease_until = $1 where id = $2 and runner = $3`,
		l.db.leaseEnd(), l.operation, l.runner))
	if err == nil && held == 0 {
		err = errTakeover
	}
	return err
}

// endregion

// complete records that nothing is left to do, and ends the lease.
func (l *lease) complete(ctx context.Context) error {
	done, err := affected(l.db.ExecContext(ctx, `
		update operations set completed_at = $1, runner = null, lease_until = null where id = $2 and runner = $3`,
		micros(l.db.now()), l.operation, l.runner))
	if err == nil && done == 0 {
		err = errTakeover
	}
	return err
}

// region release

// release ends the lease, so that a retry need not wait until it runs out. It works on
// a cancelled context as well: cleaning up is not the work that was cancelled.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockWait)
	defer cancel()
	// An error leaves the lease to run out by itself.
	_, _ = l.db.ExecContext(ctx, `
		update operations set runner = null, lease_until = null where id = $1 and runner = $2`, l.operation, l.runner)
}

// endregion

// leaseEnd is when a lease that is taken or held on to now runs out.
func (db *database) leaseEnd() int64 { return micros(db.now().Add(db.lease)) }

// alive is when the leases of living holders run out: not before now, and not much later than
// one that is taken now would. A lease from further in the future is one from before the clock
// was set back, and nobody waits for it.
func (db *database) alive() (from, to int64) {
	now := db.now()
	return micros(now), micros(now.Add(2 * db.lease))
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
