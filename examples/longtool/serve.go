package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	closeTool  = "close_stale_postings"
	statusTool = "operation_status"

	// drainGrace is short: what a stopped job leaves undone, the next server goes on with.
	drainGrace = time.Second
)

// serve runs the MCP server until its client leaves, or over HTTP until it is
// told to end.
func serve(ctx context.Context, o *options, stderr io.Writer) int {
	var listener net.Listener
	if o.http != "" {
		var err error
		if listener, err = listen(ctx, o.http); err != nil {
			return fail(stderr, err, exitUsage)
		}
		defer listener.Close()
	}
	db, err := openDatabase(ctx, o.db)
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	defer db.Close()
	board, err := db.size(ctx)
	if err == nil && board.stale+board.fresh == 0 {
		err = db.fill(ctx, o.postings, func(int, int) {})
	}
	if err != nil {
		return fail(stderr, err, exitUsage)
	}
	// Stdout belongs to the protocol; what people should know goes to stderr.
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := newServer(db, logger)
	store, closer, err := openTaskStore(ctx, o.db, db)
	if err != nil {
		return fail(stderr, fmt.Errorf("cannot keep tasks: %w", db.explain(err)), exitUsage)
	}
	defer closer.Close()
	manager, err := addTasks(ctx, s, store)
	if err != nil {
		return fail(stderr, fmt.Errorf("cannot go on with tasks: %w", db.explain(err)), exitUsage)
	}
	defer manager.Close()
	if o.stdio {
		err = stdio.Serve(ctx, s, nil)
		// Tasks have outlived their client; what is left of them is for the next server.
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
		defer cancel()
		err = errors.Join(err, s.Drain(deadline))
	} else {
		err = serveHTTP(ctx, listener, s, logger, stderr)
	}
	if err != nil {
		return fail(stderr, err, exitBroken)
	}
	return exitOK
}

// newServer is the MCP server: two tools over one database.
func newServer(db *database, logger *slog.Logger) *server.Server {
	journal := newJournal()
	s := server.New(&mcp.Implementation{Name: "longtool", Version: "1.0.0"}, &server.Options{
		Instructions: "Closes stale postings of a job board. After a cancelled call, ask " + statusTool +
			" what was committed, and repeat the call with the same operation_id to go on.",
		Logger:     logger,
		Observer:   &server.Observer{RequestDone: journal.note},
		DrainGrace: drainGrace,
	})
	server.MustAddTool(s, &mcp.Tool{
		Name: closeTool,
		Description: "Closes every stale posting, in batches, and notifies its applicants, each of them once. " +
			"Can be cancelled at any time, and called again with the same operation_id to go on where it was.",
	}, closeStalePostings(db), resumable())
	server.MustAddTool(s, &mcp.Tool{
		Name:        statusTool,
		Description: "What is committed for an operation, and which of its calls were asked to stop.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, operationStatus(db, journal))
	return s
}

type closeInput struct {
	OperationID string `json:"operation_id" jsonschema:"minLength=1,maxLength=80" jsonschema_description:"chosen by the caller; the same for every retry"`
	StaleDays   int    `json:"stale_days,omitempty" jsonschema:"minimum=1,maximum=10000,default=90" jsonschema_description:"age from which a posting is stale; the same for every retry"`
	Batch       int    `json:"batch,omitempty" jsonschema:"minimum=1,maximum=1000,default=25" jsonschema_description:"postings in one transaction"`
	Delay       string `json:"delay,omitempty" jsonschema:"maxLength=20,default=0s" jsonschema_description:"how long to make each batch take, such as 600ms, for the sake of watching"`
}

// region tool

// closeStalePostings is the tool. All that it adds to the job is progress: the
// context it is given carries the token that stops the work.
func closeStalePostings(db *database) server.ToolHandler[closeInput, Status] {
	return func(ctx context.Context, req *servercontext.Request, in closeInput) (Status, error) {
		var delay time.Duration
		if err := duration(&delay, maxDelay)(in.Delay); err != nil {
			return Status{}, fmt.Errorf("delay: %w", err)
		}
		j := &job{
			db: db, operation: in.OperationID, staleDays: in.StaleDays, batch: in.Batch, delay: delay,
			report: func(ctx context.Context, done float64, total int, phase string) error {
				return req.Progress(ctx, done, float64(total), phase)
			},
		}
		status, err := j.run(ctx)
		if err != nil {
			return Status{}, &operationError{in.OperationID, err}
		}
		return *status, nil
	}
}

// endregion

type statusInput struct {
	OperationID string `json:"operation_id" jsonschema:"minLength=1,maxLength=80"`
	Wait        string `json:"wait,omitempty" jsonschema:"maxLength=20,default=0s" jsonschema_description:"how long to wait, such as 5s, while a call still works on it"`
}

// A Report answers operation_status.
type Report struct {
	Status Status `json:"status"`
	Stops  []Stop `json:"stops" jsonschema_description:"calls of this server process that were asked to stop, oldest first"`
}

func operationStatus(db *database, journal *journal) server.ToolHandler[statusInput, Report] {
	return func(ctx context.Context, _ *servercontext.Request, in statusInput) (Report, error) {
		var wait time.Duration
		if err := duration(&wait, maxDelay)(in.Wait); err != nil {
			return Report{}, fmt.Errorf("wait: %w", err)
		}
		// The status is read last: it holds what the calls in stops committed.
		stops := journal.of(in.OperationID)
		status, err := db.settled(ctx, in.OperationID, wait)
		if err != nil {
			return Report{}, err
		}
		return Report{Status: *status, Stops: stops}, nil
	}
}
