create table if not exists postings (
	id           bigint  primary key,
	title        text    not null,
	age_days     integer not null,            -- since somebody last confirmed it
	status       text    not null default 'open',
	closings     integer not null default 0,  -- how often it was closed: 0 or 1, says the audit
	closed_by    text,                        -- the operation
	closed_batch integer
);

create table if not exists applicants (
	id         bigint primary key,
	posting_id bigint not null references postings (id),
	name       text   not null
);

create index if not exists applicants_of_posting on applicants (posting_id);

-- One row for each operation id a caller ever sent.
create table if not exists operations (
	id           text    primary key,
	stale_days   integer not null,
	total        integer not null,  -- stale postings when it began
	runs         integer not null default 0,
	runner       text,              -- the run that may write; null when none does
	lease_until  bigint,            -- the runner is believed dead after this, in unix microseconds
	completed_at bigint
);

-- One row for each batch, written in the transaction that did the work.
create table if not exists ledger (
	operation_id text    not null references operations (id),
	batch        integer not null,  -- 1, 2, 3, … without a gap
	postings     integer not null,
	notices      integer not null,
	committed_at bigint  not null,
	primary key (operation_id, batch)
);

-- Notices that are owed, written in the same transaction as well.
create table if not exists outbox (
	operation_id text    not null references operations (id),
	batch        integer not null,
	applicant_id bigint  not null references applicants (id),
	sent_at      bigint,            -- null until delivered
	primary key (operation_id, applicant_id)
);

-- What reached the applicants. The unique key is what a mail service would
-- call an idempotency key: a notice that is delivered again changes nothing.
create table if not exists notifications (
	operation_id text   not null,
	applicant_id bigint not null,
	text         text   not null,
	unique (operation_id, applicant_id)
);
