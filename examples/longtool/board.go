package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	_ "embed"
)

// staleDays is the age from which a posting counts as stale.
const staleDays = 90

//go:embed schema.sql
var schema string

// createTables makes the tables that are missing. A database that holds other
// tables is refused.
func (db *database) createTables(ctx context.Context) error {
	if db.dialect == "PostgreSQL" {
		_, err := db.ExecContext(ctx, "create schema if not exists longtool;\n"+schema)
		return err
	}
	var mark, tables int
	if err := db.QueryRowContext(ctx, "pragma application_id").Scan(&mark); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "select count(*) from sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if mark != ownerMark && tables > 0 {
		return errForeign
	}
	// A transaction, so that a locked or read-only file shows here, not later.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, fmt.Sprintf("pragma application_id = %d;\n%s", ownerMark, schema))
	if err != nil {
		return err
	}
	return tx.Commit()
}

// size is what a board holds.
type size struct {
	stale, fresh, applicants int
}

func (db *database) size(ctx context.Context) (s size, err error) {
	err = db.QueryRowContext(ctx, `
		select (select count(*) from postings where age_days >= $1),
		       (select count(*) from postings where age_days <  $1),
		       (select count(*) from applicants)`, staleDays).Scan(&s.stale, &s.fresh, &s.applicants)
	return s, err
}

// fill empties the board and puts stale postings on it, a fresh one for every
// four of them, and one to four applicants for each. The same number gives the
// same board. A board that an operation works on right now is left alone.
func (db *database) fill(ctx context.Context, stale int, report func(done, total int)) error {
	tx, err := db.begin(ctx)
	if err != nil {
		return fmt.Errorf("cannot fill database %q: %w", db.name, db.explain(err))
	}
	defer tx.Rollback()
	from, to := db.alive()
	var running int
	err = tx.QueryRowContext(ctx, `
		select count(*) from operations where runner is not null and lease_until between $1 and $2`,
		from, to).Scan(&running)
	if err != nil {
		return err
	}
	if running > 0 {
		return fmt.Errorf("cannot fill database %q: an operation is running on it", db.name)
	}
	for _, table := range []string{"notifications", "outbox", "ledger", "operations", "applicants", "postings"} {
		if _, err := tx.ExecContext(ctx, "delete from "+table); err != nil {
			return err
		}
	}
	total := stale + stale/4
	people := 0
	random := rand.New(rand.NewPCG(1, uint64(stale)))
	for done := 0; done < total; {
		var postings, applicants rows
		for ; done < total && postings.count < 100; done++ {
			id := done + 1
			age := staleDays + random.IntN(400)
			if id%5 == 0 { // every fifth is fresh
				age = random.IntN(staleDays)
			}
			postings.add(id, pick(random, jobs)+", "+pick(random, places), age)
			for range 1 + random.IntN(4) {
				people++
				applicants.add(people, id, pick(random, firstNames)+" "+pick(random, lastNames))
			}
		}
		_, err := tx.ExecContext(ctx, "insert into postings (id, title, age_days) values "+postings.sql(), postings.args...)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "insert into applicants (id, posting_id, name) values "+applicants.sql(), applicants.args...)
		if err != nil {
			return err
		}
		report(done, total)
	}
	return tx.Commit()
}

// rows collects the values of one insert.
type rows struct {
	count int
	args  []any
	text  strings.Builder
}

func (r *rows) add(values ...any) {
	if r.count > 0 {
		r.text.WriteString(", ")
	}
	for i := range values {
		separator := "("
		if i > 0 {
			separator = ", "
		}
		fmt.Fprintf(&r.text, "%s$%d", separator, len(r.args)+i+1)
	}
	r.text.WriteString(")")
	r.args = append(r.args, values...)
	r.count++
}

func (r *rows) sql() string { return r.text.String() }

func pick(random *rand.Rand, from []string) string { return from[random.IntN(len(from))] }

var (
	jobs = []string{
		"Baker", "Bookbinder", "Bus driver", "Carpenter", "Clockmaker", "Data engineer", "Gardener", "Goldsmith",
		"Librarian", "Midwife", "Nurse", "Piano tuner", "Plumber", "Roofer", "Teacher", "Translator", "Welder",
	}
	places = []string{
		"Aarhus", "Bergen", "Coimbra", "Delft", "Évora", "Freiburg", "Ghent", "Helsinki", "Innsbruck", "Kraków",
		"Leuven", "Malmö", "Nantes", "Olomouc", "Porto", "Riga", "Siena", "Tartu", "Uppsala", "Vilnius",
	}
	firstNames = []string{
		"Ada", "Bo", "Clara", "Dmitri", "Elif", "Femi", "Grace", "Hugo", "Ines", "Jun", "Kofi", "Lena", "Mateo",
		"Nora", "Omar", "Priya", "Quinn", "Rosa", "Sven", "Tomoko", "Uma", "Victor", "Wanda", "Yusuf", "Zoë",
	}
	lastNames = []string{
		"Almeida", "Berg", "Chen", "Dubois", "Eriksen", "Fischer", "García", "Haddad", "Ito", "Jansen", "Kaya",
		"Lopez", "Moreau", "Novak", "Okafor", "Petrov", "Rossi", "Sato", "Tanaka", "Weber", "Zieliński",
	}
)
