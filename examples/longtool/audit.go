package main

import (
	"context"
	"fmt"
)

// An invariant is a claim about the database and the queries that count the
// rows that break it. They compare what different statements wrote, and believe
// neither a status nor a caller.
type invariant struct {
	claim string
	// counted says how many rows the claim is about.
	counted, noun string
	// always holds at every moment, whoever stopped whatever and when.
	always []string
	// finally holds as well once every operation is complete.
	finally []string
}

var invariants = []invariant{
	{
		claim:   "every posting was closed once",
		counted: `select count(*) from postings where status = 'closed'`, noun: "closed",
		always: []string{
			// closings counts each time that the closing statement met the row
			`select count(*) from postings where closings <> case when status = 'closed' then 1 else 0 end`,
			`select count(*) from postings where (status = 'closed') <> (closed_by is not null and closed_batch is not null)`,
			// only stale ones
			`select count(*) from postings p left join operations o on o.id = p.closed_by
			 where p.status = 'closed' and (o.id is null or p.age_days < o.stale_days)`,
		},
		finally: []string{
			`select count(*) from postings p
			 where p.status = 'open' and exists (select 1 from operations o where p.age_days >= o.stale_days)`,
		},
	},
	{
		claim:   "every applicant was notified once",
		counted: `select count(*) from notifications`, noun: "notified",
		always: []string{
			// a notice is owed to each applicant of a closed posting, and to nobody else
			`select count(*) from applicants a join postings p on p.id = a.posting_id
			 where (select count(*) from outbox o where o.applicant_id = a.id)
			    <> case when p.status = 'closed' then 1 else 0 end`,
			// a notice has arrived when the outbox says so, and only once
			`select count(*) from applicants a
			 where (select count(*) from notifications n where n.applicant_id = a.id)
			    <> (select count(*) from outbox o where o.applicant_id = a.id and o.sent_at is not null)`,
		},
		finally: []string{
			`select count(*) from outbox where sent_at is null`,
		},
	},
	{
		claim:   "the ledger equals the rows",
		counted: `select count(*) from ledger`, noun: "batches",
		always: []string{
			`select count(*) from ledger l
			 full outer join (select closed_by, closed_batch, count(*) as n from postings
			                  where closed_by is not null group by closed_by, closed_batch) r
			   on r.closed_by = l.operation_id and r.closed_batch = l.batch
			 where l.postings is null or r.n is null or l.postings <> r.n`,
			`select count(*) from ledger l
			 full outer join (select operation_id, batch, count(*) as n from outbox group by operation_id, batch) r
			   on r.operation_id = l.operation_id and r.batch = l.batch
			 where l.notices is null or r.n is null or l.notices <> r.n`,
			// batches are numbered without a gap
			`select count(*) from (select max(batch) as last, count(*) as n from ledger group by operation_id) l
			 where l.last <> l.n`,
		},
		finally: []string{
			`select count(*) from operations where completed_at is null or runner is not null`,
		},
	},
}

// A finding is an invariant and what the database says about it.
type finding struct {
	claim  string
	wrong  int // rows that break it
	detail string
}

func (f finding) holds() bool { return f.wrong == 0 }

// audit checks every invariant; finished says that all operations are complete.
func (db *database) audit(ctx context.Context, finished bool) ([]finding, error) {
	var findings []finding
	for _, i := range invariants {
		f := finding{claim: i.claim}
		queries := i.always
		if finished {
			queries = append(queries[:len(queries):len(queries)], i.finally...)
		}
		for _, query := range queries {
			wrong, err := db.count(ctx, query)
			if err != nil {
				return nil, fmt.Errorf("checking that %s: %w", i.claim, err)
			}
			f.wrong += wrong
		}
		n, err := db.count(ctx, i.counted)
		if err != nil {
			return nil, err
		}
		f.detail = fmt.Sprintf("%s %s", thousands(n), i.noun)
		findings = append(findings, f)
	}
	return findings, nil
}

func (db *database) count(ctx context.Context, query string) (n int, err error) {
	err = db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
