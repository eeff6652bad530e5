package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
)

func openPostgres(where string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(where)
	if err != nil {
		return nil, errors.New("the URL is malformed") // err may quote the password
	}
	// All tables live in a schema of their own, so the statements need no prefix.
	config.RuntimeParams["search_path"] = "longtool"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	// region postgres
	// A cancelled statement is stopped in the server before its caller goes on.
	// The default is to hang up, and its locks may then outlive the call.
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &canceller{
			CancelRequestContextWatcherHandler: pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 2 * time.Second},
			connection:                         conn,
		}
	}
	return stdlib.OpenDB(*config, stdlib.OptionResetSession(discardCancelled)), nil
	// endregion
}

// region canceller

// A canceller asks the server to cancel the statement of a connection. The
// request names the connection and not the statement, travels on a connection
// of its own, and may arrive late: then it would hit whatever runs there next,
// which may be somebody else's call. So a connection is used no more after it.
type canceller struct {
	pgconn.CancelRequestContextWatcherHandler
	connection *pgconn.PgConn
}

const cancelledKey = "longtool.cancelled"

// HandleCancel is called when the context of the running statement ends; the
// driver waits for it before it goes on with the connection.
func (c *canceller) HandleCancel(ctx context.Context) {
	c.connection.CustomData()[cancelledKey] = true
	c.CancelRequestContextWatcherHandler.HandleCancel(ctx)
}

// discardCancelled is asked before a connection is used again.
func discardCancelled(_ context.Context, conn *pgx.Conn) error {
	if conn.PgConn().CustomData()[cancelledKey] != nil {
		return driver.ErrBadConn
	}
	return nil
}

// endregion
