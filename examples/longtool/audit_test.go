package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An audit that cannot fail proves nothing: each kind of damage must be found.
func TestAuditFindsDamage(t *testing.T) {
	const closed, notified, ledger = "every posting was closed once", "every applicant was notified once", "the ledger equals the rows"
	for _, c := range []struct {
		name, damage string
		broken       []string
	}{
		{"closed twice", `update postings set closings = 2 where id = 1`, []string{closed}},
		{"closed, not counted", `update postings set closings = 0 where id = 1`, []string{closed}},
		{"closed by nobody", `update postings set closed_by = null where id = 1`, []string{closed, ledger}},
		{"closed without a batch", `update postings set closed_batch = null where id = 1`, []string{closed, ledger}},
		{"fresh one closed", `update postings set age_days = 3 where id = 1`, []string{closed}},
		{"opened again", `update postings set status = 'open', closings = 0, closed_by = null, closed_batch = null where id = 1`,
			[]string{closed, notified, ledger}},
		{"never closed", `insert into postings (id, title, age_days) values (1000, 'Late', 500)`, []string{closed}},
		{"notice lost", `delete from notifications where applicant_id = 1`, []string{notified}},
		{"notified twice", `insert into notifications (operation_id, applicant_id, text) values ('other', 1, 'again')`, []string{notified}},
		{"notice never owed", `delete from outbox where applicant_id = 1`, []string{notified, ledger}},
		{"notice still owed", `update outbox set sent_at = null where applicant_id = 1`, []string{notified}},
		{"batch not in the ledger", `delete from ledger where batch = 2`, []string{ledger}},
		{"last batch not in the ledger", `delete from ledger where batch = (select max(batch) from ledger)`, []string{ledger}},
		{"ledger counts too many", `update ledger set postings = postings + 1 where batch = 2`, []string{ledger}},
		{"ledger counts too few notices", `update ledger set notices = notices - 1 where batch = 2`, []string{ledger}},
		{"ledger invents a batch", `insert into ledger (operation_id, batch, postings, notices, committed_at) values ('op', 4, 1, 1, 1)`, []string{ledger}},
		{"gap", `update ledger set batch = 5 where batch = 3`, []string{ledger}},
		{"operation not complete", `update operations set completed_at = null`, []string{ledger}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEachDatabase(t, func(t *testing.T, db *database) {
				fillTest(t, db, 12)
				_, err := testJob(db, 4).run(t.Context())
				require.NoError(t, err)
				requireAudit(t, db, true)
				_, err = db.ExecContext(t.Context(), c.damage)
				require.NoError(t, err)
				findings, err := db.audit(t.Context(), true)
				require.NoError(t, err)
				var broken []string
				for _, f := range findings {
					if !f.holds() {
						broken = append(broken, f.claim)
					}
				}
				require.Equal(t, c.broken, broken)
			})
		})
	}
}
