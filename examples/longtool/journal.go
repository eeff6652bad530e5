package main

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/heedmcp/heed/server"
)

// journalled bounds how many stops the journal remembers.
const journalled = 1000

// A Stop is a call that was asked to stop, as the server observed it.
type Stop struct {
	RequestID string    `json:"request_id"`
	Origin    string    `json:"origin" jsonschema_description:"who asked"`
	Reason    string    `json:"reason" jsonschema_description:"why, in the words of whoever asked"`
	Requested time.Time `json:"requested" jsonschema_description:"when the server accepted the cancel"`
	Observed  time.Time `json:"observed" jsonschema_description:"when the tool first noticed"`
	Returned  time.Time `json:"returned" jsonschema_description:"when the tool had returned"`
}

// An operationError says which operation a call failed or was stopped in. The
// peer of a cancelled call never sees it, but the server's observer does.
type operationError struct {
	operation string
	err       error
}

func (e *operationError) Error() string { return e.err.Error() }
func (e *operationError) Unwrap() error { return e.err }

// A journal remembers which calls were asked to stop.
type journal struct {
	mu    sync.Mutex
	stops []journalEntry // oldest first
}

type journalEntry struct {
	operation string
	stop      Stop
}

func newJournal() *journal { return &journal{} }

// region note

// note is the server's observer: it is told about every request that ended.
func (j *journal) note(done server.RequestDone) {
	var failed *operationError
	if !done.Cancelled || !errors.As(done.Err, &failed) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.stops) == journalled {
		j.stops = slices.Delete(j.stops, 0, 1)
	}
	j.stops = append(j.stops, journalEntry{failed.operation, Stop{
		RequestID: done.ID,
		Origin:    done.Origin.String(),
		Reason:    done.Reason,
		Requested: done.Requested,
		Observed:  done.Observed,
		Returned:  done.Returned,
	}})
}

// endregion

// of returns the stops of one operation, never nil.
func (j *journal) of(operation string) []Stop {
	j.mu.Lock()
	defer j.mu.Unlock()
	stops := []Stop{}
	for _, e := range j.stops {
		if e.operation == operation {
			stops = append(stops, e.stop)
		}
	}
	return stops
}
