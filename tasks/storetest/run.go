package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/tasks"
)

// Run checks a store. open returns an empty one that has room for max tasks.
func Run(t *testing.T, open func(t *testing.T, max int) tasks.Store) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s tasks.Store)
	}{
		{"a record comes back as it was", comesBack},
		{"records are copied", areCopied},
		{"unknown tasks are not found", areNotFound},
		{"a task that has ended is never changed", neverChanges},
		{"only the current run saves", onlyCurrentRun},
		{"a task is forgotten when its time is over, and not before", isPurged},
		{"a task that has not ended is kept", isKept},
		{"signals reach the owner once and in order", signalsArrive},
		{"a task that has ended takes no signals", noSignals},
		{"signals are bounded", signalsBounded},
		{"signals are bounded in bytes", largeSignalsBounded},
		{"a lease keeps others away until it is over", leaseHolds},
		{"what is released can be claimed at once", isReleased},
		{"claims take the oldest, and no more than the limit", claimsOldest},
		{"no task is claimed twice", claimedOnce},
		{"one of many ends wins", oneEndWins},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t, 1000)) })
	}
	t.Run("a full store takes no more, until something has expired", func(t *testing.T) { isBounded(t, open(t, 3)) })
}

// now has no more precision than stores must keep.
func now() time.Time { return time.Now().Truncate(time.Microsecond) }

func record(id string) *tasks.Record {
	at := now()
	return &tasks.Record{
		ID: id, Principal: "alice", Tool: "job", Status: tasks.Working, Created: at, Updated: at,
		TTL: time.Hour, Poll: time.Second, Owner: "one", LeaseUntil: at.Add(time.Minute), Run: 1,
		Params: json.RawMessage(`{"name":"job","arguments":{"n":12345678901234567890,"text":"<a&b>"}}`), Version: "2026-07-28",
	}
}

func ended(r *tasks.Record) *tasks.Record {
	c := r.Clone()
	c.Status, c.Result = tasks.Completed, json.RawMessage(`{"content":[]}`)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBe(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got error %v, want %v", got, want)
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %#v, want %#v", got, want)
	}
}

func load(t *testing.T, s tasks.Store, id string) *tasks.Record {
	t.Helper()
	r, err := s.Load(t.Context(), id)
	must(t, err)
	return r
}

// same compares all that a record says, instants by what they mean.
func same(t *testing.T, got, want *tasks.Record) {
	t.Helper()
	text := func(r *tasks.Record) string {
		c := r.Clone()
		for _, at := range []*time.Time{&c.Created, &c.Updated, &c.LeaseUntil} {
			*at = at.UTC().Round(0)
		}
		if c.Stop != nil {
			c.Stop.At = c.Stop.At.UTC().Round(0)
		}
		raw, err := json.Marshal(c)
		must(t, err)
		return string(raw)
	}
	equal(t, text(got), text(want))
}

func comesBack(t *testing.T, s tasks.Store) {
	r := record("a")
	must(t, s.Create(t.Context(), r))
	same(t, load(t, s, "a"), r)
	r.Status, r.Message = tasks.InputRequired, "Ünïcode \u2028 and \"quotes\""
	r.Questions = map[string]server.InputRequest{"k": {Method: "elicitation/create", Params: json.RawMessage(`{"a":1.50}`)}}
	r.Keys = []string{"k"}
	r.Stop = &tasks.Stop{Origin: "peer", Reason: "why", At: now()}
	r.Responses, r.State = map[string]json.RawMessage{"x": json.RawMessage(`{"action":"accept"}`)}, "state"
	must(t, s.Save(t.Context(), r))
	same(t, load(t, s, "a"), r)
	r.Status, r.Questions, r.Error = tasks.Failed, nil, json.RawMessage(`{"code":-32603,"message":"x"}`)
	must(t, s.Save(t.Context(), r))
	same(t, load(t, s, "a"), r)
}

func areCopied(t *testing.T, s tasks.Store) {
	r := record("a")
	must(t, s.Create(t.Context(), r))
	r.Message = "changed"
	equal(t, load(t, s, "a").Message, "")
	load(t, s, "a").Message = "changed as well"
	equal(t, load(t, s, "a").Message, "")
}

func areNotFound(t *testing.T, s tasks.Store) {
	_, err := s.Load(t.Context(), "a")
	mustBe(t, err, tasks.ErrNotFound)
	mustBe(t, s.Save(t.Context(), record("a")), tasks.ErrNotFound)
	mustBe(t, s.Post(t.Context(), tasks.Signal{Task: "a"}), tasks.ErrNotFound)
	must(t, s.Release(t.Context(), "nobody"))
}

func neverChanges(t *testing.T, s tasks.Store) {
	r := record("a")
	must(t, s.Create(t.Context(), r))
	last := ended(r)
	must(t, s.Save(t.Context(), last))
	r.Status = tasks.Cancelled
	mustBe(t, s.Save(t.Context(), r), tasks.ErrEnded)
	r.Status = tasks.Working
	mustBe(t, s.Save(t.Context(), r), tasks.ErrEnded)
	_, err := s.Renew(t.Context(), "one", now().Add(time.Hour))
	must(t, err)
	must(t, s.Release(t.Context(), "one"))
	claimed, err := s.Claim(t.Context(), "two", now().Add(2*time.Hour), now().Add(3*time.Hour), 10)
	must(t, err)
	equal(t, len(claimed), 0)
	same(t, load(t, s, "a"), last)
}

func onlyCurrentRun(t *testing.T, s tasks.Store) {
	r := record("a")
	must(t, s.Create(t.Context(), r))
	claimed, err := s.Claim(t.Context(), "two", r.LeaseUntil, r.LeaseUntil.Add(time.Minute), 1)
	must(t, err)
	equal(t, len(claimed), 1)
	equal(t, claimed[0].Run, 2)
	equal(t, claimed[0].Owner, "two")
	mustBe(t, s.Save(t.Context(), ended(r)), tasks.ErrTaken)
	same(t, load(t, s, "a"), claimed[0])
	must(t, s.Save(t.Context(), ended(claimed[0])))
}

func isPurged(t *testing.T, s tasks.Store) {
	for id, ttl := range map[string]time.Duration{"gone": time.Minute, "kept": 2 * time.Hour, "forever": 0} {
		r := record(id)
		r.Created = now().Add(-time.Hour)
		r.TTL = ttl
		must(t, s.Create(t.Context(), r))
		must(t, s.Save(t.Context(), ended(r)))
	}
	_, err := s.Load(t.Context(), "gone")
	mustBe(t, err, tasks.ErrNotFound)
	n, err := s.Purge(t.Context(), now())
	must(t, err)
	equal(t, n, 1)
	load(t, s, "kept")
	load(t, s, "forever")
	n, err = s.Purge(t.Context(), now().Add(1000*time.Hour))
	must(t, err)
	equal(t, n, 1)
	load(t, s, "forever")
}

func isKept(t *testing.T, s tasks.Store) {
	r := record("a")
	r.Created, r.TTL = now().Add(-time.Hour), time.Minute
	must(t, s.Create(t.Context(), r))
	n, err := s.Purge(t.Context(), now())
	must(t, err)
	equal(t, n, 0)
	load(t, s, "a")
}

func signalsArrive(t *testing.T, s tasks.Store) {
	must(t, s.Create(t.Context(), record("a")))
	other := record("b")
	other.Owner = "two"
	must(t, s.Create(t.Context(), other))
	stop := tasks.Signal{Task: "a", Stop: &tasks.Stop{Origin: "peer", Reason: "enough"}}
	answer := tasks.Signal{Task: "a", Responses: map[string]json.RawMessage{"k": json.RawMessage(`{"action":"accept"}`)}}
	must(t, s.Post(t.Context(), answer))
	must(t, s.Post(t.Context(), stop))
	signals, err := s.Renew(t.Context(), "two", now().Add(time.Hour))
	must(t, err)
	equal(t, len(signals), 0)
	signals, err = s.Renew(t.Context(), "one", now().Add(time.Hour))
	must(t, err)
	equal(t, len(signals), 2)
	equal(t, signals[0], answer)
	equal(t, signals[1].Stop.Reason, "enough")
	signals, err = s.Renew(t.Context(), "one", now().Add(time.Hour))
	must(t, err)
	equal(t, len(signals), 0)
}

func noSignals(t *testing.T, s tasks.Store) {
	r := record("a")
	must(t, s.Create(t.Context(), r))
	must(t, s.Post(t.Context(), tasks.Signal{Task: "a"}))
	must(t, s.Save(t.Context(), ended(r)))
	mustBe(t, s.Post(t.Context(), tasks.Signal{Task: "a"}), tasks.ErrEnded)
	signals, err := s.Renew(t.Context(), "one", now().Add(time.Hour))
	must(t, err)
	equal(t, len(signals), 0)
}

func signalsBounded(t *testing.T, s tasks.Store) {
	must(t, s.Create(t.Context(), record("a")))
	const enough = 10000
	for range enough {
		if err := s.Post(t.Context(), tasks.Signal{Task: "a"}); err != nil {
			mustBe(t, err, tasks.ErrFull)
			must(t, s.Post(t.Context(), stop("a")))
			return
		}
	}
	t.Fatalf("%d signals wait for one task", enough)
}

func stop(task string) tasks.Signal {
	return tasks.Signal{Task: task, Stop: &tasks.Stop{Origin: "peer", At: now()}}
}

func largeSignalsBounded(t *testing.T, s tasks.Store) {
	must(t, s.Create(t.Context(), record("a")))
	large := tasks.Signal{Task: "a", Responses: map[string]json.RawMessage{"key": json.RawMessage(`"` + strings.Repeat("x", 4<<20) + `"`)}}
	must(t, s.Post(t.Context(), large))
	const enough = 20
	for range enough {
		if err := s.Post(t.Context(), large); err != nil {
			mustBe(t, err, tasks.ErrFull)
			must(t, s.Post(t.Context(), stop("a")))
			signals, err := s.Renew(t.Context(), "one", now().Add(time.Hour))
			must(t, err)
			equal(t, len(signals[0].Responses["key"]), 4<<20+2)
			must(t, s.Post(t.Context(), large)) // there is room again
			return
		}
	}
	t.Fatalf("%d signals of four megabytes wait for one task", enough)
}

func leaseHolds(t *testing.T, s tasks.Store) {
	r := record("a")
	must(t, s.Create(t.Context(), r))
	claim := func(at time.Time) int {
		claimed, err := s.Claim(t.Context(), "two", at, at.Add(time.Minute), 10)
		must(t, err)
		return len(claimed)
	}
	equal(t, claim(now()), 0)
	renewed := r.LeaseUntil.Add(time.Hour)
	_, err := s.Renew(t.Context(), "one", renewed)
	must(t, err)
	equal(t, claim(renewed.Add(-time.Second)), 0)
	equal(t, claim(renewed), 1)
	equal(t, load(t, s, "a").Owner, "two")
}

func isReleased(t *testing.T, s tasks.Store) {
	must(t, s.Create(t.Context(), record("a")))
	r := record("b")
	must(t, s.Create(t.Context(), r))
	r.LeaseUntil = time.Time{}
	must(t, s.Save(t.Context(), r))
	claimed, err := s.Claim(t.Context(), "two", now(), now().Add(time.Minute), 10)
	must(t, err)
	equal(t, len(claimed), 1)
	equal(t, claimed[0].ID, "b")
	must(t, s.Release(t.Context(), "one"))
	claimed, err = s.Claim(t.Context(), "three", now(), now().Add(time.Minute), 10)
	must(t, err)
	equal(t, len(claimed), 1)
	equal(t, claimed[0].ID, "a")
}

func claimsOldest(t *testing.T, s tasks.Store) {
	for i := range 5 {
		r := record(fmt.Sprint(i))
		r.Created = now().Add(-time.Duration(i) * time.Minute)
		r.LeaseUntil = time.Time{}
		must(t, s.Create(t.Context(), r))
	}
	var ids []string
	for range 2 {
		claimed, err := s.Claim(t.Context(), "two", now(), now().Add(time.Minute), 2)
		must(t, err)
		for _, r := range claimed {
			ids = append(ids, r.ID)
		}
	}
	equal(t, ids, []string{"4", "3", "2", "1"})
}

func claimedOnce(t *testing.T, s tasks.Store) {
	const count = 100
	for i := range count {
		r := record(fmt.Sprint(i))
		r.LeaseUntil = time.Time{}
		must(t, s.Create(t.Context(), r))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for {
				claimed, err := s.Claim(t.Context(), fmt.Sprint("owner", n), now(), now().Add(time.Hour), 7)
				if err != nil {
					t.Error(err)
				}
				if len(claimed) == 0 {
					return
				}
				mu.Lock()
				for _, r := range claimed {
					seen[r.ID]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	equal(t, len(seen), count)
	for id, times := range seen {
		if times != 1 {
			t.Fatalf("task %s was claimed %d times", id, times)
		}
	}
}

func oneEndWins(t *testing.T, s tasks.Store) {
	for i := range 20 {
		r := record(fmt.Sprint(i))
		must(t, s.Create(t.Context(), r))
		won := make(chan tasks.Status, 8)
		var all sync.WaitGroup
		for n := range cap(won) {
			all.Go(func() {
				last := ended(r)
				if n%2 == 0 {
					last.Status, last.Result = tasks.Cancelled, nil
				}
				if err := s.Save(context.WithoutCancel(t.Context()), last); err == nil {
					won <- last.Status
				} else if !errors.Is(err, tasks.ErrEnded) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		equal(t, len(won), 1)
		equal(t, load(t, s, r.ID).Status, <-won)
	}
}

func isBounded(t *testing.T, s tasks.Store) {
	expiring := record("0")
	expiring.Created, expiring.TTL = now().Add(-time.Hour), time.Minute
	must(t, s.Create(t.Context(), expiring))
	must(t, s.Create(t.Context(), record("1")))
	must(t, s.Create(t.Context(), record("2")))
	mustBe(t, s.Create(t.Context(), record("3")), tasks.ErrFull)
	must(t, s.Save(t.Context(), ended(expiring)))
	must(t, s.Create(t.Context(), record("3")))
	mustBe(t, s.Create(t.Context(), record("4")), tasks.ErrFull)
}
