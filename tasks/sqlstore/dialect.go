package sqlstore

import (
	"fmt"
	"strings"
)

// Dialect is the SQL that a database understands.
type Dialect uint8

const (
	// SQLite is version 3.35 or newer.
	SQLite Dialect = iota
	// PostgreSQL is version 10 or newer.
	PostgreSQL
)

func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// statements are what the store executes; never changed.
type statements struct {
	schema []string

	create, load, save, state       string
	post, renew, signals, delivered string
	claim, release                  string
	purge, purgeSignals             string
}

// compile writes the statements for one dialect. # stands for the table's name. Every
// parameter occurs once, in order, so that both ways of numbering mean the same.
func compile(d Dialect, table string) *statements {
	serial, skipLocked := "integer primary key autoincrement", ""
	if d == PostgreSQL {
		serial, skipLocked = "bigint generated always as identity primary key", " for update skip locked"
	}
	q := func(text string) string { return strings.ReplaceAll(text, "#", table) }
	return &statements{
		schema: []string{
			q(`create table if not exists # (
				id text primary key, owner text not null, run bigint not null, lease_until bigint not null,
				created bigint not null, expires bigint not null, ended integer not null, record text not null)`),
			q(`create index if not exists #_lease on # (ended, lease_until)`),
			q(`create index if not exists #_expires on # (ended, expires)`),
			q(`create table if not exists #_signals (
				seq ` + serial + `, task text not null, signal text not null)`),
			q(`create index if not exists #_signals_task on #_signals (task)`),
		},
		create: q(`insert into # (id, owner, run, lease_until, created, expires, ended, record)
			select cast($1 as text), cast($2 as text), cast($3 as bigint), cast($4 as bigint),
			       cast($5 as bigint), cast($6 as bigint), cast($7 as integer), cast($8 as text)
			where (select count(*) from #) < cast($9 as bigint)`),
		load:  q(`select owner, run, lease_until, record from # where id = $1`),
		state: q(`select run, ended from # where id = $1`),
		save: q(`update # set owner = $1, lease_until = $2, expires = $3, ended = $4, record = $5
			where id = $6 and run = $7 and ended = 0`),
		post: q(`insert into #_signals (task, signal)
			select cast($1 as text), cast($2 as text)
			where exists (select 1 from # where id = $3 and ended = 0)
			and (select count(*) from #_signals where task = $4) < cast($5 as bigint)
			and (select coalesce(sum(length(signal)), 0) from #_signals where task = $6) < cast($7 as bigint)`),
		renew: q(`update # set lease_until = $1 where owner = $2 and ended = 0`),
		signals: q(`select s.seq, s.signal from #_signals s join # t on t.id = s.task
			where t.owner = $1 and t.ended = 0 order by s.seq`),
		delivered: q(`delete from #_signals where seq = $1`),
		claim: q(`update # set owner = $1, lease_until = $2, run = run + 1
			where id in (select id from # where ended = 0 and lease_until <= $3 order by created, id limit $4` + skipLocked + `)
			returning owner, run, lease_until, record`),
		release: q(`update # set lease_until = 0 where owner = $1 and ended = 0`),
		purge:   q(`delete from # where ended = 1 and expires > 0 and expires <= $1`),
		purgeSignals: q(`delete from #_signals where not exists (
			select 1 from # t where t.id = #_signals.task and t.ended = 0)`),
	}
}
