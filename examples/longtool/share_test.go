package main

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trace makes the database write down which run committed which batch.
var trace = map[string][]string{
	"SQLite": {
		`create table trace (batch integer, runner text)`,
		`create trigger traced after insert on ledger begin
			insert into trace select new.batch, runner from operations where id = new.operation_id; end`,
	},
	"PostgreSQL": {
		`create table trace (batch integer, runner text)`,
		`create function note() returns trigger language plpgsql as $$ begin
			insert into trace select new.batch, runner from operations where id = new.operation_id; return null; end $$`,
		`create trigger traced after insert on ledger for each row execute function note()`,
	},
}

// shareBatches are many more than are done before the first Stop arrives.
const shareBatches = 150

// mostStops bounds how often each caller presses Stop; then it waits for the end.
const mostStops = 20

// Two servers share a database, and callers of both use one operation id and
// press Stop at random. It never runs twice at once, however it is handed over.
func TestTwoServersShareOneDatabase(t *testing.T) {
	onEachPlace(t, func(t *testing.T, where string) {
		db := openTest(t, where)
		fillTest(t, db, 2*shareBatches)
		for _, statement := range trace[db.dialect] {
			_, err := db.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		sleeping := watchStatements(t, db)

		ended := make(chan int)
		reaches := []*reach{&overStdio, &overHTTP}
		for _, reach := range reaches {
			l, err := reach.open(t.Context(), where)
			require.NoError(t, err)
			defer func() { assert.NoError(t, l.close()) }()
			go func() {
				stops := 0
				defer func() { ended <- stops }()
				for {
					var status Status
					switch err := callAndStop(t.Context(), l, stops < mostStops, &status); {
					case err == nil:
						assert.Equal(t, stateCompleted, status.State)
						return
					case errors.Is(err, context.Canceled):
						stops++
					case strings.Contains(err.Error(), errBusy.Error()): // the other one works for long
					default:
						assert.NoError(t, err)
						return
					}
				}
			}()
		}
		stops := 0
		for range reaches {
			stops += <-ended
		}
		atOnce := sleeping()

		require.Positive(t, stops)
		requireAudit(t, db, true)
		runners := runnersOf(t, db)
		require.Len(t, runners, shareBatches)
		order := slices.Compact(slices.Clone(runners))
		t.Logf("%d stops, %d runs committed batches, at most %d statements at once", stops, len(order), atOnce)
		require.LessOrEqual(t, atOnce, 1)
		slices.Sort(order)
		require.Len(t, slices.Compact(slices.Clone(order)), len(order), "a run came back after another had taken over: %v", runners)
		require.Greater(t, len(order), 1, "the operation was handed over")
	})
}

// callAndStop calls the tool, and presses Stop at a random moment after the call began to
// work, if it is to be stopped.
func callAndStop(ctx context.Context, l *link, toBeStopped bool, status *Status) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	params := toolCall(closeTool, map[string]any{"operation_id": "op", "batch": 2, "delay": "20ms"})
	token := rand.Text()
	params.SetProgressToken(token)
	ended := make(chan error, 1)
	go func() { ended <- l.call(ctx, params, status) }()
	var button <-chan time.Time
	for {
		select {
		case p := <-l.progress:
			if p.token == token && toBeStopped && button == nil {
				button = time.After(mathrand.N(100 * time.Millisecond))
			}
		case <-button:
			stop()
		case err := <-ended:
			return err
		}
	}
}

// runnersOf returns which run committed each batch, in order.
func runnersOf(t *testing.T, db *database) (runners []string) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), `select runner from trace order by batch`)
	require.NoError(t, err)
	defer found.Close()
	for found.Next() {
		var runner string
		require.NoError(t, found.Scan(&runner))
		runners = append(runners, runner)
	}
	require.NoError(t, found.Err())
	return runners
}

// watchStatements counts how many of the slow statements run at once, where the
// database tells, until the function it returns is called.
func watchStatements(t *testing.T, db *database) (most func() int) {
	t.Helper()
	if db.dialect != "PostgreSQL" {
		return func() int { return 0 }
	}
	ctx, cancel := context.WithCancel(t.Context())
	counted := make(chan int)
	go func() {
		most := 0
		for ctx.Err() == nil {
			n, err := db.count(ctx, `
				select count(*) from pg_stat_activity
				where datname = current_database() and state = 'active' and wait_event = 'PgSleep'`)
			if err == nil {
				most = max(most, n)
			}
			_ = pause(ctx, time.Millisecond)
		}
		counted <- most
	}()
	t.Cleanup(cancel)
	return func() int {
		cancel()
		most := <-counted
		assert.Equal(t, 1, most, "the statements are seen")
		return most
	}
}
