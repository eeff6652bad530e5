// Package tasks lets calls of tools outlive the request, and the connection, that
// started them: the extension io.modelcontextprotocol/tasks.
//
//	m, err := tasks.Enable(s, nil)
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	server.AddTool(s, &mcp.Tool{Name: "close_stale"}, closeStale,
//		tasks.Tool(tasks.ToolOptions{Support: tasks.WhenPossible}))
//
// The handler is the same function as before. Its context lives as long as the
// task does and carries the same token, which tasks/cancel cancels with origin Peer as
// notifications/cancelled does for a call. Progress becomes the task's status
// message. Elicit, CreateMessage and ListRoots make the task input_required until
// tasks/update has brought the answers; so do input requests that the handler returns.
// Handlers that want more find their [Task] in the context.
//
// A call becomes a task when it has taken [ToolOptions.After], when its handler asks
// the client something by a call that blocks, or when it calls [Task.Begin]. What it
// returns before then is its answer: input requests, too, whose rounds thus come
// before the task (call.go).
//
// # What survives
//
// Tasks are kept in a [Store]: by default in memory, with package sqlstore in SQLite or
// PostgreSQL. There they survive the process. A process that is started calls
// [Manager.Recover] and goes on with what others have left, or marks it as failed,
// as each tool has chosen. A handler that is run again gets the same arguments
// and the same [Task.ID]; what it has done before it must find by that id, or by an
// argument that names the operation.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. Each running task costs
// its handler's goroutine; everything else is done by timers.
//
// # Guarantees
//
//   - A task that has ended never changes.
//   - A task is reported as cancelled only when its handler has returned. One that
//     ignores its token stays working, says that a stop was requested, and is reported
//     to operators as every handler that does so ([server.Options.Grace]).
//   - A task is stored before its client hears of it, and its end before anybody does.
//   - A task can be named only by who started it: ids cannot be guessed, and are bound
//     to the principal where there is authorization.
//   - No task is forgotten before its announced time; when there is no room, none is created.
//
// What is not guaranteed: that work is done once. A process that dies may have
// done a step without having noted it, so steps must be safe to repeat. And a
// process that cannot reach its store for longer than the lease may find that another one
// has begun its tasks anew; it is then asked to stop.
package tasks
