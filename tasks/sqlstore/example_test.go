package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/tasks/sqlstore"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tasks in a database survive their process. The driver is the program's choice: import one for its
// name, as in import _ "modernc.org/sqlite".
func ExampleOpen() {
	ctx := context.Background()
	serve := func(s *server.Server) error {
		db, err := sql.Open("sqlite", "file:tasks.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)")
		if err != nil {
			return err
		}
		defer db.Close()
		store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
		if err != nil {
			return err
		}
		m, err := tasks.Enable(s, &tasks.Options{Store: store, Owner: "jobs-1"}) // the same name after a restart
		if err != nil {
			return err
		}
		defer m.Close()
		// register the tools, then take up what the process before has left
		_, _, err = m.Recover(ctx)
		return err
	}
	fmt.Println(serve(server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, nil)))
	// Output: sql: unknown driver "sqlite" (forgotten import?)
}

// Where programs may not create tables, an administrator does.
func ExampleSchema() {
	for _, statement := range sqlstore.Schema(sqlstore.PostgreSQL, "jobs") {
		fmt.Println(strings.TrimSpace(strings.SplitN(statement, "(", 2)[0]))
	}
	// Output:
	// create table if not exists jobs
	// create index if not exists jobs_lease on jobs
	// create index if not exists jobs_expires on jobs
	// create table if not exists jobs_signals
	// create index if not exists jobs_signals_task on jobs_signals
}
