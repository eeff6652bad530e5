package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/heedmcp/heed/tasks"
)

// Options configure a store. A nil *Options, like the zero value, is the default.
type Options struct {
	// Table is the name of the table, and the beginning of the names of the other
	// one and of the indexes: lower case letters, digits and underscores. "": heed_tasks.
	Table string
	// NoSchema says that the tables are there, so that they need not be created:
	// [Schema] says how.
	NoSchema bool
	// MaxTasks bounds the tasks in the table. 0: 65536; negative: no bound.
	MaxTasks int
}

const (
	defaultTable    = "heed_tasks"
	defaultMaxTasks = 65536
	noBound         = 1 << 62
)

// Store is a [tasks.Store] in a database.
type Store struct {
	db       *sql.DB
	sql      *statements
	maxTasks int64
}

var _ tasks.Store = (*Store)(nil)

// Open returns the store in db, and creates its tables if they are missing. options may be
// nil. db stays the caller's to close. It returns an error when the dialect or the
// table's name is none, and when the tables cannot be created.
func Open(ctx context.Context, db *sql.DB, d Dialect, options *Options) (*Store, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if o.Table == "" {
		o.Table = defaultTable
	}
	if d > PostgreSQL {
		return nil, fmt.Errorf("sqlstore: there is no dialect %v", d)
	}
	if !tableName.MatchString(o.Table) {
		return nil, fmt.Errorf("sqlstore: %.80q is no name for a table", o.Table)
	}
	s := &Store{db: db, sql: compile(d, o.Table), maxTasks: defaultMaxTasks}
	if o.MaxTasks > 0 {
		s.maxTasks = int64(o.MaxTasks)
	} else if o.MaxTasks < 0 {
		s.maxTasks = noBound
	}
	if !o.NoSchema {
		for _, statement := range s.sql.schema {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return nil, fmt.Errorf("sqlstore: %w", err)
			}
		}
	}
	return s, nil
}

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// Schema returns the statements that create the tables. table may be "", as in Options.
func Schema(d Dialect, table string) []string {
	if table == "" {
		table = defaultTable
	}
	return slices.Clone(compile(d, table).schema)
}

// Create implements tasks.Store.
func (s *Store) Create(ctx context.Context, r *tasks.Record) error {
	record, err := encode(r)
	if err != nil {
		return err
	}
	for purged := false; ; purged = true {
		n, err := affected(s.db.ExecContext(ctx, s.sql.create, r.ID, r.Owner, r.Run, micros(r.LeaseUntil),
			micros(r.Created), micros(r.Expires()), flag(r.Status.Ended()), record, s.maxTasks))
		switch {
		case err != nil:
			return err
		case n > 0:
			return nil
		case purged:
			return tasks.ErrFull
		}
		if _, err := s.Purge(ctx, time.Now()); err != nil {
			return err
		}
	}
}

// Load implements tasks.Store.
func (s *Store) Load(ctx context.Context, id string) (*tasks.Record, error) {
	r, err := scan(s.db.QueryRowContext(ctx, s.sql.load, id))
	if errors.Is(err, sql.ErrNoRows) || err == nil && r.Expired(time.Now()) {
		return nil, tasks.ErrNotFound
	}
	return r, err
}

// Save implements tasks.Store.
func (s *Store) Save(ctx context.Context, r *tasks.Record) error {
	record, err := encode(r)
	if err != nil {
		return err
	}
	n, err := affected(s.db.ExecContext(ctx, s.sql.save, r.Owner, micros(r.LeaseUntil), micros(r.Expires()),
		flag(r.Status.Ended()), record, r.ID, r.Run))
	if err != nil || n > 0 {
		return err
	}
	switch run, ended, err := s.state(ctx, r.ID); {
	case err != nil:
		return err
	case ended:
		return tasks.ErrEnded
	case run != r.Run:
		return tasks.ErrTaken
	}
	return errors.New("sqlstore: the task was not saved")
}

// state says why a task could not be changed.
func (s *Store) state(ctx context.Context, id string) (run int, ended bool, err error) {
	var flag int
	err = s.db.QueryRowContext(ctx, s.sql.state, id).Scan(&run, &flag)
	if errors.Is(err, sql.ErrNoRows) {
		err = tasks.ErrNotFound
	}
	return run, flag != 0, err
}

// Post implements tasks.Store.
func (s *Store) Post(ctx context.Context, signal tasks.Signal) error {
	raw, err := encode(signal)
	if err != nil {
		return err
	}
	maxSignals, maxBytes := signal.Room()
	n, err := affected(s.db.ExecContext(ctx, s.sql.post, signal.Task, raw, signal.Task,
		signal.Task, maxSignals, signal.Task, maxBytes))
	if err != nil || n > 0 {
		return err
	}
	if _, ended, err := s.state(ctx, signal.Task); err != nil {
		return err
	} else if ended {
		return tasks.ErrEnded
	}
	return tasks.ErrFull
}

// Renew implements tasks.Store.
func (s *Store) Renew(ctx context.Context, owner string, until time.Time) (signals []tasks.Signal, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // does nothing after the commit
	if _, err := tx.ExecContext(ctx, s.sql.renew, micros(until), owner); err != nil {
		return nil, err
	}
	found, err := tx.QueryContext(ctx, s.sql.signals, owner)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var delivered []int64
	for found.Next() {
		var seq int64
		var raw string
		var signal tasks.Signal
		if err := found.Scan(&seq, &raw); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(raw), &signal); err != nil {
			return nil, fmt.Errorf("sqlstore: signal %d: %w", seq, err)
		}
		delivered = append(delivered, seq)
		signals = append(signals, signal)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	for _, seq := range delivered {
		if _, err := tx.ExecContext(ctx, s.sql.delivered, seq); err != nil {
			return nil, err
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return signals, nil
}

// Claim implements tasks.Store.
func (s *Store) Claim(ctx context.Context, owner string, now, until time.Time, limit int) ([]*tasks.Record, error) {
	found, err := s.db.QueryContext(ctx, s.sql.claim, owner, micros(until), micros(now), limit)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var claimed []*tasks.Record
	for found.Next() {
		r, err := scan(found)
		if err != nil {
			return nil, err
		}
		claimed = append(claimed, r)
	}
	slices.SortFunc(claimed, func(a, b *tasks.Record) int { return a.Created.Compare(b.Created) })
	return claimed, found.Err()
}

// Release implements tasks.Store.
func (s *Store) Release(ctx context.Context, owner string) error {
	_, err := s.db.ExecContext(ctx, s.sql.release, owner)
	return err
}

// Purge implements tasks.Store.
func (s *Store) Purge(ctx context.Context, now time.Time) (int, error) {
	n, err := affected(s.db.ExecContext(ctx, s.sql.purge, micros(now)))
	if err != nil {
		return 0, err
	}
	_, err = s.db.ExecContext(ctx, s.sql.purgeSignals)
	return n, err
}

// row is what a record is read from.
type row interface{ Scan(to ...any) error }

// scan reads a record. What the columns say counts: leases are renewed there.
func scan(from row) (*tasks.Record, error) {
	var owner, raw string
	var run int
	var lease int64
	if err := from.Scan(&owner, &run, &lease, &raw); err != nil {
		return nil, err
	}
	r := &tasks.Record{}
	if err := json.Unmarshal([]byte(raw), r); err != nil {
		return nil, fmt.Errorf("sqlstore: a record is malformed: %w", err)
	}
	r.Owner, r.Run, r.LeaseUntil = owner, run, instant(lease)
	return r, nil
}

// encode leaves what is in v as it is: clients get it back.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.String(), err
}

func affected(r sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// micros is t in microseconds since 1970; 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
