package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

var (
	// ErrNotFound is returned when there is no task with that id, or no longer.
	ErrNotFound = errors.New("tasks: no such task")
	// ErrFull is returned by Create, and by Post, when the store has no room.
	ErrFull = errors.New("tasks: too many tasks")
	// ErrEnded is returned by Save when the task has come to its end before.
	ErrEnded = errors.New("tasks: the task has ended")
	// ErrTaken is returned by Save when another manager has begun the task anew.
	ErrTaken = errors.New("tasks: the task is run by somebody else")
)

// Store keeps tasks. The default keeps them in memory; one that keeps them
// elsewhere lets them survive the process, and lets several processes share them.
// Package storetest checks an implementation.
//
// Rules for implementations:
//
//   - All methods are safe for concurrent use. Records that are given belong to
//     the caller, records that are returned to the caller as well: a store copies.
//   - A method has either happened or not when it returns, whatever the error.
//   - A record that has ended is never changed again, save that Purge removes it.
//   - A record is only saved by its current run, so that a manager that was
//     believed dead cannot spoil what its successor does.
//   - Instants are kept to the microsecond at least.
type Store interface {
	// Create adds a task. It returns ErrFull when there is no room.
	Create(ctx context.Context, r *Record) error

	// Load returns a task, or ErrNotFound; also when the task has expired.
	Load(ctx context.Context, id string) (*Record, error)

	// Save replaces a task's record. It returns ErrNotFound, ErrEnded when the
	// task has ended, or ErrTaken when its Run is not r's.
	Save(ctx context.Context, r *Record) error

	// Post leaves a signal for whoever runs the task, now or later. It returns
	// ErrNotFound, ErrEnded, or ErrFull when too many, or too large ones, wait for that task
	// already. A stop must find room where answers do not.
	Post(ctx context.Context, s Signal) error

	// Renew prolongs the leases of all tasks of owner that have not ended, and takes
	// the signals that were posted for them, in the order of posting.
	Renew(ctx context.Context, owner string, until time.Time) ([]Signal, error)

	// Claim takes at most limit tasks that have not ended and whose lease is
	// over at now: it increments Run, sets Owner and LeaseUntil, and returns them, the
	// oldest first. No task is given to two claims with the same run.
	Claim(ctx context.Context, owner string, now, until time.Time, limit int) ([]*Record, error)

	// Release ends the leases of all tasks of owner that have not ended.
	Release(ctx context.Context, owner string) error

	// Purge removes what has expired at now and reports how many that were.
	Purge(ctx context.Context, now time.Time) (int, error)
}

// Signal is what a manager that does not run a task tells the one that does.
type Signal struct {
	// Task is the task's id.
	Task string `json:"task"`
	// Stop asks it to stop, if not nil.
	Stop *Stop `json:"stop,omitempty"`
	// Responses answer its questions, by key.
	Responses map[string]json.RawMessage `json:"responses,omitempty"`
}

// Room is how many signals, and how many bytes of them, may wait for a task already when s is
// left for it: the bounds of the stores of this module. They are twice as large for a stop, which must
// not be lost among answers. The last one that is taken may go beyond the bytes.
func (s *Signal) Room() (signals, bytes int) {
	signals, bytes = 1000, 16<<20
	if s.Stop != nil {
		return 2 * signals, 2 * bytes
	}
	return signals, bytes
}

// size is about what it takes in memory, in bytes.
func (s *Signal) size() int {
	n := len(s.Task)
	if s.Stop != nil {
		n += len(s.Stop.Reason)
	}
	for key, response := range s.Responses {
		n += len(key) + len(response)
	}
	return n
}
