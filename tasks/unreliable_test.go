package tasks_test

import (
	"context"
	"errors"
	"sync"

	"github.com/heedmcp/heed/tasks"
)

var errBroken = errors.New("the disk is on fire")

// unreliable is a store that fails when it is told to.
type unreliable struct {
	tasks.Store
	mu      sync.Mutex
	creates int           // this many more succeed
	broken  bool          // everything else fails
	gate    chan struct{} // Create waits for it, if not nil
}

func (u *unreliable) set(broken bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.broken = broken
}

func (u *unreliable) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken {
		return errBroken
	}
	return nil
}

func (u *unreliable) Create(ctx context.Context, r *tasks.Record) error {
	if u.gate != nil {
		<-u.gate
	}
	u.mu.Lock()
	u.creates--
	refused := u.creates < 0
	u.mu.Unlock()
	if refused {
		return errBroken
	}
	return u.Store.Create(ctx, r)
}

func (u *unreliable) Load(ctx context.Context, id string) (*tasks.Record, error) {
	if err := u.err(); err != nil {
		return nil, err
	}
	return u.Store.Load(ctx, id)
}

func (u *unreliable) Save(ctx context.Context, r *tasks.Record) error {
	if err := u.err(); err != nil {
		return err
	}
	return u.Store.Save(ctx, r)
}

func (u *unreliable) Post(ctx context.Context, s tasks.Signal) error {
	if err := u.err(); err != nil {
		return err
	}
	return u.Store.Post(ctx, s)
}
