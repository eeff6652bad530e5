// Package model says what may become of a request, in a form that can be run.
//
// A [Life] is one request's life: accepted, queued for a slot, running,
// perhaps parked, returned; cancelled or not, and by whom; and its fate on the
// wire. [Event] is what can happen to it, and [Life.After] what becomes of it then.
// Where several things happen at once [Outcomes] lists every life that one
// order of them or another leads to, and no other is right.
//
//	life := model.Life{}.After(model.Event{Kind: model.Start})
//	life = life.After(model.Event{Kind: model.Cancel, Cause: model.Peer})
//	life.Fate // model.Silent: whatever the handler returns now
//
// The tests of this package drive the real server with random steps over stdio and
// HTTP, in both eras at once, and compare it with this model after every step:
//
//	go test ./internal/model
//	make soak-model
//
// # Concurrency
//
// Lives are values; the functions are pure.
//
// # Guarantees
//
// The model knows nothing of the server: it imports none of it, so that it
// cannot be right only because the server is wrong in the same way.
package model
