package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heedmcp/heed/tasks"
)

// What package tasks does with its store, in the life of a task: a process creates the task and
// dies; another claims it once its lease is over, takes the signals that came meanwhile,
// and brings it to its end. A store of your own has to pass package storetest.
func ExampleStore() {
	var (
		store tasks.Store = tasks.NewMemory(0, 0)
		ctx               = context.Background()
		now               = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	)
	fmt.Println(store.Create(ctx, &tasks.Record{
		ID: "t-1", Tool: "close_stale", Status: tasks.Working, Created: now, Updated: now,
		Owner: "jobs-1", Run: 1, LeaseUntil: now.Add(15 * time.Second),
	}))
	fmt.Println(store.Post(ctx, tasks.Signal{Task: "t-1", Stop: &tasks.Stop{Origin: "peer", Reason: "not needed any more", At: now}}))

	later := now.Add(time.Minute)
	claimed, err := store.Claim(ctx, "jobs-2", later, later.Add(15*time.Second), 10)
	fmt.Println(len(claimed), claimed[0].ID, claimed[0].Run, err)
	signals, err := store.Renew(ctx, "jobs-2", later.Add(30*time.Second))
	fmt.Println(signals[0].Task, signals[0].Stop.Reason, err)

	r := claimed[0]
	r.Status, r.Updated = tasks.Cancelled, later
	fmt.Println(store.Save(ctx, r))
	fmt.Println(errors.Is(store.Save(ctx, r), tasks.ErrEnded)) // an end is final
	// Output:
	// <nil>
	// <nil>
	// 1 t-1 2 <nil>
	// t-1 not needed any more <nil>
	// <nil>
	// true
}
