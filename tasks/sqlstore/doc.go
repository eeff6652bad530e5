// Package sqlstore keeps tasks in SQLite or PostgreSQL, through database/sql and
// whatever driver the program has chosen. There they survive the process, and several
// processes can share them.
//
//	db, err := sql.Open("sqlite", "file:tasks.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)")
//	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
//	m, err := tasks.Enable(s, &tasks.Options{Store: store, Owner: "jobs-1"})
//	// register the tools, then:
//	resumed, failed, err := m.Recover(ctx)
//
// SQLite must be given a busy timeout, since it has one writer at a time. The two
// tables have no foreign keys and can live in any database.
//
// # Concurrency
//
// All methods may be called from any goroutine, and from several processes.
// Each is one statement or one transaction, the first statement of which writes, so that
// SQLite never has to turn a reader into a writer.
//
// # Guarantees
//
// Those of [tasks.Store]; package storetest checks them on both databases.
package sqlstore
