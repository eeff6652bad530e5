package cancellation_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ledger is a database driver whose transactions only record how they end, and
// whose statements run until their context ends, unless they are told to "return".
type ledger struct {
	ends    chan string   // "commit" or "rollback", in order
	running chan struct{} // receives when a statement has started
}

func (l *ledger) Connect(context.Context) (driver.Conn, error) { return ledgerConn{l}, nil }
func (l *ledger) Driver() driver.Driver                        { return nil }

type ledgerConn struct{ *ledger }

func (c ledgerConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (c ledgerConn) Close() error                        { return nil }
func (c ledgerConn) Begin() (driver.Tx, error)           { return c, nil }
func (c ledgerConn) Commit() error                       { c.ends <- "commit"; return nil }
func (c ledgerConn) Rollback() error                     { c.ends <- "rollback"; return nil }

func (c ledgerConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

func (c ledgerConn) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	if query == "return" {
		return driver.RowsAffected(1), nil
	}
	c.running <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func openLedger(t *testing.T) (*ledger, *sql.DB) {
	l := &ledger{ends: make(chan string, 10), running: make(chan struct{})}
	db := sql.OpenDB(l)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return l, db
}

func TestSQLTransactionCommitsInsideAShield(t *testing.T) {
	l, db := openLedger(t)
	for range 100 {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		step, cancel := context.WithTimeout(s.Context(), time.Hour)
		child := cancellation.New(s.Context())
		tx, err := db.BeginTx(step, nil)
		require.NoError(t, err)
		// The shield is entered through a request below, the transaction is bound above.
		require.NoError(t, cancellation.Shield(child.Context(), func(context.Context) error {
			s.Cancel(cancellation.Peer, "stop")
			if _, err := tx.ExecContext(step, "return"); err != nil {
				return err
			}
			return tx.Commit()
		}))
		require.Equal(t, "commit", <-l.ends)
		require.True(t, s.Token().Cancelled())
		cancel()
	}
}

func TestSQLTransactionRollsBackWithoutAShield(t *testing.T) {
	l, db := openLedger(t)
	for origin, want := range map[cancellation.Origin]error{
		cancellation.Peer:    context.Canceled,
		cancellation.Timeout: context.DeadlineExceeded,
	} {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		tx, err := db.BeginTx(s.Context(), nil)
		require.NoError(t, err)
		s.Cancel(origin, "stop")
		require.Equal(t, "rollback", <-l.ends)
		require.Error(t, tx.Commit())

		_, err = db.BeginTx(s.Context(), nil)
		require.ErrorIs(t, err, want)
	}
}

func TestSQLStatementIsInterrupted(t *testing.T) {
	l, db := openLedger(t)
	for origin, want := range map[cancellation.Origin]error{
		cancellation.Disconnect: context.Canceled,
		cancellation.Timeout:    context.DeadlineExceeded,
	} {
		s := cancellation.New(context.WithoutCancel(t.Context()))
		ctx, cancel := context.WithCancel(s.Context())
		go func() {
			<-l.running
			s.Cancel(origin, "stop")
		}()
		_, err := db.ExecContext(ctx, "wait")
		require.Equal(t, want, err)
		cancel()
	}
}
