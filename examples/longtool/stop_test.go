package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A paced server does what longtool's does, at the pace of Stop: a commit that Stop is aimed at
// waits for it, or is through before its client hears of it.
type paced struct {
	story *story
	meets []bool       // whether the commit waits, for each call to be stopped; later ones run as they do
	calls atomic.Int32 // so far
	// recorded gets one for each stop that the server has recorded.
	recorded chan struct{}
}

// server is one on the story's database. It tells a status when the stop before is recorded.
func (p *paced) server() *server.Server {
	journal := newJournal()
	s := server.New(&mcp.Implementation{Name: "longtool", Version: "1.0.0"}, &server.Options{
		ProgressInterval: -1,
		Observer: &server.Observer{RequestDone: func(done server.RequestDone) {
			journal.note(done)
			if done.Cancelled {
				p.recorded <- struct{}{}
			}
		}},
	})
	server.MustAddTool(s, &mcp.Tool{Name: closeTool}, p.closePostings)
	status := operationStatus(p.story.db, journal)
	server.MustAddTool(s, &mcp.Tool{Name: statusTool}, func(ctx context.Context, req *servercontext.Request, in statusInput) (Report, error) {
		<-p.recorded
		return status(ctx, req, in)
	})
	return s
}

func (p *paced) closePostings(ctx context.Context, req *servercontext.Request, in closeInput) (Status, error) {
	n := int(p.calls.Add(1))
	j := testJob(p.story.db, in.Batch)
	j.operation = in.OperationID
	var held float64 // a report of a commit that is told when that is through
	j.report = func(within context.Context, done float64, total int, phase string) error {
		aimedAt := n <= len(p.meets) && p.story.batchOf(progress{done: done}) >= p.story.secondStop()
		switch {
		case !aimedAt:
			return req.Progress(within, done, float64(total), phase)
		case phase == phaseCommitting:
			if held = done; !p.meets[n-1] {
				return nil
			}
		case p.meets[n-1]:
			return cancellation.Checkpoint(within)
		}
		if err := req.Progress(within, held, float64(total), phaseCommitting); err != nil {
			return err
		}
		if err := accepts(ctx); err != nil {
			return err
		}
		return cancellation.Checkpoint(within)
	}
	status, err := j.run(ctx)
	if err != nil {
		return Status{}, &operationError{in.OperationID, err}
	}
	return *status, nil
}

// accepts waits until the cancel of a call has been accepted, also behind a shield: then no other is opened.
func accepts(call context.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), surely)
	defer cancel()
	for cancellation.Shield(call, func(context.Context) error { return nil }) == nil {
		if err := pause(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("nobody has pressed Stop: %w", err)
		}
	}
	return nil
}

// connectPaced connects a story to a server in this process, over pipes.
func connectPaced(t *testing.T, s *server.Server) (l *link, leave func()) {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- stdio.ServeStream(context.Background(), s, serverIn, serverOut, nil)
		serverOut.Close()
	}()
	tap := newTap(methodCancelled)
	l, err := connect(t.Context(), &tapped{&mcp.IOTransport{Reader: clientIn, Writer: clientOut}, tap}, tap, func() string { return "" })
	require.NoError(t, err)
	return l, func() {
		assert.NoError(t, l.close())
		assert.NoError(t, <-served)
	}
}

// Stop that is aimed at a commit, and is later than it, is pressed again in the next one: until one
// is met, but not without end, and not for the sake of the last batch.
func TestStopInACommitIsPressedAgain(t *testing.T) {
	const again = "That commit was through before Stop arrived. Once more, in the next one."
	for name, c := range map[string]struct {
		postings, batch int
		meets           []bool
		committed       int // batches in the end
	}{
		"met at once":             {30, 5, []bool{true}, 4},
		"met at the second":       {30, 5, []bool{false, true}, 5},
		"met at the third":        {30, 3, []bool{false, false, true}, 8},
		"never met":               {30, 3, []bool{false, false, false}, 8},
		"not in the last batch":   {15, 5, []bool{false, false}, 3},
		"met in the last of them": {15, 5, []bool{false, true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			onEachDatabase(t, func(t *testing.T, db *database) {
				var out strings.Builder
				story := newStory(&options{postings: c.postings, batch: c.batch}, newScreen(&out, false), db, &overStdio)
				require.NoError(t, story.fill(t.Context()))
				p := &paced{story: story, meets: c.meets, recorded: make(chan struct{}, len(c.meets))}
				var leave func()
				story.link, leave = connectPaced(t, p.server())
				defer leave()

				require.NoError(t, story.stopInTheCommit(t.Context()))
				require.EqualValues(t, len(c.meets), p.calls.Load(), "calls\n%s", &out)
				said := strings.Join(strings.Fields(out.String()), " ")
				require.Equal(t, len(c.meets)-1, strings.Count(said, again), said)
				met := c.meets[len(c.meets)-1]
				require.Equal(t, met, strings.Contains(said, "its commit was shielded, and it is whole"), said)
				for _, s := range story.stops {
					require.NotNil(t, s.record)
					require.Equal(t, "peer", s.record.Origin)
				}
				status, err := db.status(t.Context(), story.operation)
				require.NoError(t, err)
				require.Equal(t, c.committed, status.Batches)
				requireAudit(t, db, false)

				require.NoError(t, story.complete(t.Context()))
				requireAudit(t, db, true)
			})
		})
	}
}
