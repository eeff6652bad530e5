package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/tasks"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answered is a reply that keeps the answer.
type answered chan []byte

func (a answered) Send([]byte) error        { return nil }
func (a answered) Answer(msg []byte, _ int) { a <- slices.Clone(msg) }
func (a answered) Silence()                 { close(a) }

// begin calls a tool and returns the id of the task that the call has become.
func begin(ss *server.Session, tool string) string {
	a := make(answered, 1)
	ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`), a, nil, nil)
	var got struct{ Result struct{ TaskID string } }
	if err := json.Unmarshal(<-a, &got); err != nil {
		fmt.Println(err)
	}
	return got.Result.TaskID
}

// An operator looks at a task and stops it. The task has ended only when its
// handler has.
func ExampleManager() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{HideServerInfo: true, Logger: slog.New(slog.DiscardHandler)})
	m, err := tasks.Enable(s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	ended := make(chan struct{})
	server.MustAddTool(s, &mcp.Tool{Name: "export"}, func(ctx context.Context, _ *servercontext.Request, _ struct{}) (string, error) {
		defer close(ended)
		task, _ := tasks.FromContext(ctx)
		task.SetMessage("exporting") // people see it
		<-ctx.Done()
		return "", cancellation.Checkpoint(ctx)
	}, tasks.Tool(tasks.ToolOptions{Support: tasks.Always, After: -1})) // a task from the start
	ctx := context.Background()
	ss := s.Open(ctx, server.SessionOptions{})
	id := begin(ss, "export")

	fmt.Println("running:", m.Running())
	if err := m.Cancel(ctx, id, "the disk is full"); err != nil {
		fmt.Println(err)
	}
	<-ended
	_ = s.Drain(ctx) // waits until its end is stored
	record, err := m.Get(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s %v\n%s\n", record.Tool, record.Status, record.Status.Ended(), record.Result)
	// Output:
	// running: 1
	// export completed true
	// {"resultType":"complete","content":[{"type":"text","text":"cancelled by shutdown: \"the disk is full\""}],"isError":true}
}

// A store is what tasks survive the process in. This one is bounded and forgets with
// the process.
func ExampleMemory() {
	ctx, now := context.Background(), time.Unix(1_700_000_000, 0)
	store := tasks.NewMemory(1, 0) // one task
	record := &tasks.Record{ID: "a", Tool: "export", Status: tasks.Working, Run: 1,
		Created: now, TTL: time.Hour, Owner: "dead", LeaseUntil: now.Add(15 * time.Second)}
	fmt.Println(store.Create(ctx, record), store.Create(ctx, &tasks.Record{ID: "b", Status: tasks.Working, Run: 1, Created: now}))

	// Its process died. When the lease is over, another one takes the task.
	later := now.Add(time.Minute)
	taken, err := store.Claim(ctx, "alive", later, later.Add(15*time.Second), 10)
	fmt.Println(len(taken), taken[0].Run, err)
	// The first process, which was only slow, cannot spoil it any more.
	fmt.Println(store.Save(ctx, record))
	// Output:
	// <nil> tasks: too many tasks
	// 1 2 <nil>
	// tasks: the task is run by somebody else
}

// When a task may be forgotten.
func ExampleRecord_Expired() {
	now := time.Now()
	record := &tasks.Record{Status: tasks.Completed, Created: now, TTL: time.Hour}
	fmt.Println(record.Expired(now), record.Expired(now.Add(2*time.Hour)), record.Expires().Equal(now.Add(time.Hour)))
	record.Status = tasks.Working // one that has not ended is kept
	fmt.Println(record.Expired(now.Add(2 * time.Hour)))
	// Output:
	// false true true
	// false
}
