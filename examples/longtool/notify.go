package main

import (
	"context"

	"github.com/heedmcp/heed/cancellation"
)

// noticesPerCommit is how many notices deliver sends in one transaction.
const noticesPerCommit = 50

// deliver sends the notices that the operation owes. It may be stopped anywhere
// and called again: a notice leaves the outbox in the transaction that
// delivers it, and its key is unique.
func (l *lease) deliver(ctx context.Context) error {
	for {
		sent, err := l.deliverSome(ctx)
		if err != nil || sent < noticesPerCommit {
			return err
		}
	}
}

type notice struct {
	applicant   int64
	name, title string
}

func (l *lease) deliverSome(ctx context.Context) (sent int, err error) {
	tx, err := l.db.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if err := l.hold(ctx, tx); err != nil {
		return 0, err
	}
	found, err := tx.QueryContext(ctx, `
		select a.id, a.name, p.title
		from outbox o join applicants a on a.id = o.applicant_id join postings p on p.id = a.posting_id
		where o.operation_id = $1 and o.sent_at is null order by a.id limit $2`, l.operation, noticesPerCommit)
	if err != nil {
		return 0, err
	}
	var pending []notice
	for found.Next() {
		var n notice
		if err := found.Scan(&n.applicant, &n.name, &n.title); err != nil {
			found.Close()
			return 0, err
		}
		pending = append(pending, n)
	}
	if err := found.Err(); err != nil {
		return 0, err
	}
	for _, n := range pending {
		if err := cancellation.Checkpoint(ctx); err != nil {
			return 0, err
		}
		_, err := tx.ExecContext(ctx, `
			insert into notifications (operation_id, applicant_id, text) values ($1, $2, $3)
			on conflict (operation_id, applicant_id) do nothing`,
			l.operation, n.applicant, "Dear "+n.name+", the posting «"+n.title+"» is closed.")
		if err != nil {
			return 0, err
		}
		_, err = tx.ExecContext(ctx, `update outbox set sent_at = $1 where operation_id = $2 and applicant_id = $3`,
			micros(l.db.now()), l.operation, n.applicant)
		if err != nil {
			return 0, err
		}
	}
	if len(pending) == 0 {
		return 0, nil
	}
	return len(pending), commit(ctx, tx)
}
