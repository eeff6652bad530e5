package main

import (
	"context"
	"errors"
	"io"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/tasks"
	"github.com/heedmcp/heed/tasks/sqlstore"
)

// tasksSuffix ends the name of the SQLite file in which tasks are kept. They have one of
// their own: a long batch holds the board's only write lock, and what becomes of a
// task is to be written at once.
const tasksSuffix = ".tasks"

// openTaskStore opens the store in which tasks survive the server: on PostgreSQL the
// board's own database, on SQLite a file next to it.
func openTaskStore(ctx context.Context, where string, board *database) (*sqlstore.Store, io.Closer, error) {
	if isPostgres(where) {
		store, err := sqlstore.Open(ctx, board.DB, sqlstore.PostgreSQL, nil)
		return store, io.NopCloser(nil), err
	}
	db, err := openSQLite(where + tasksSuffix)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlstore.Open(ctx, db, sqlstore.SQLite, nil)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, db, nil
}

// region tasks

// resumable makes each call of a client that knows tasks a task, which the next
// server goes on with when this one is gone.
func resumable() *server.ToolOptions {
	return tasks.Tool(tasks.ToolOptions{
		Support: tasks.WhenPossible, After: -1, OnRestart: tasks.Resume, Poll: taskPoll,
	})
}

// addTasks lets calls outlive their clients, and goes on with the tasks of servers
// that are gone. All tools are registered before.
func addTasks(ctx context.Context, s *server.Server, store tasks.Store) (*tasks.Manager, error) {
	m, err := tasks.Enable(s, &tasks.Options{Store: store, Lease: leaseTime})
	if err != nil {
		return nil, err
	}
	if _, _, err := m.Recover(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// endregion
