// Command sqlbatch changes many rows in batches. Between two batches a cancel ends the work; while a
// statement runs it ends the statement; while a batch is committed it waits for the commit. What was
// done stays done and is in the ledger, so that the same call, made again, does the rest.
//
//	go run . orders.db
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	_ "modernc.org/sqlite"
)

const schema = `
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, year INTEGER NOT NULL, archived_by TEXT);
CREATE INDEX IF NOT EXISTS current_orders ON orders (year) WHERE archived_by IS NULL;
CREATE TABLE IF NOT EXISTS ledger (operation TEXT, batch INTEGER, orders INTEGER NOT NULL, PRIMARY KEY (operation, batch));`

const batchSize = 100

type archiveIn struct {
	Operation string `json:"operation" jsonschema:"minLength=1" jsonschema_description:"names this piece of work; the same name goes on with it"`
	Before    int    `json:"before" jsonschema_description:"orders of earlier years are archived"`
}

type archive struct{ db *sql.DB }

// region archive
func (a *archive) run(ctx context.Context, req *servercontext.Request, in archiveIn) (string, error) {
	done, batches, total, err := a.standing(ctx, in)
	for err == nil {
		// Progress is the checkpoint between two batches.
		if err = req.Progress(ctx, float64(done), float64(total), fmt.Sprintf("%d batches", batches)); err != nil {
			break
		}
		var n int
		if n, err = a.batch(ctx, in, batches+1); err == nil && n == 0 {
			return fmt.Sprintf("archived %d orders in %d batches", done, batches), nil
		}
		done, batches = done+n, batches+1
	}
	return "", err
}

// batch is one transaction: its rows and its line in the ledger, both or neither.
func (a *archive) batch(ctx context.Context, in archiveIn, number int) (n int, err error) {
	tx, err := a.db.BeginTx(context.WithoutCancel(ctx), nil) // a tx's own ctx would roll back within the commit
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	changed, err := tx.ExecContext(ctx, // the statement itself ends with the token
		`UPDATE orders SET archived_by = ? WHERE id IN (SELECT id FROM orders WHERE year < ? AND archived_by IS NULL LIMIT ?)`,
		in.Operation, in.Before, batchSize)
	if err != nil {
		return 0, err
	}
	rows, err := changed.RowsAffected()
	if err != nil || rows == 0 {
		return 0, err
	}
	return int(rows), cancellation.Shield(ctx, func(ctx context.Context) error { // refused if a cancel was first
		if _, err := tx.ExecContext(ctx, `INSERT INTO ledger VALUES (?, ?, ?)`, in.Operation, number, rows); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// endregion

// standing is what earlier calls of the operation have done, and how much there is in all.
func (a *archive) standing(ctx context.Context, in archiveIn) (done, batches, total int, err error) {
	err = a.db.QueryRowContext(ctx, `SELECT coalesce(sum(orders), 0), count(*),
		(SELECT count(*) FROM orders WHERE year < ? AND (archived_by IS NULL OR archived_by = ?))
		FROM ledger WHERE operation = ?`, in.Before, in.Operation, in.Operation).Scan(&done, &batches, &total)
	return done, batches, total, err
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sqlbatch DATABASE")
		os.Exit(2)
	}
	db, err := sql.Open("sqlite", "file:"+os.Args[1]+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec(schema); err != nil {
		log.Fatal(err)
	}
	s := server.New(&mcp.Implementation{Name: "sqlbatch", Version: "1.0.0"}, nil)
	// One at a time: two calls of an operation would get in each other's way.
	server.MustAddTool(s, &mcp.Tool{Name: "archive_orders", Description: "Archives old orders."},
		(&archive{db}).run, &server.ToolOptions{MaxConcurrent: 1})
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Print(err)
	}
	_ = db.Close()
}
