package streamable

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// listener is the stream of a session for messages that belong to no request: the
// client opens it by GET. Unlike a stream it has a queue, so that whoever sends
// never waits for a client that does not read.
type listener struct {
	s *session

	mu     sync.Mutex // guards the fields below
	gone   chan struct{}
	wake   chan struct{} // holds a token while the queue is not empty; capacity 1; nil while nobody listens
	queue  []queued      // not written yet, at most limit
	limit  int
	events int  // how many events were given an id
	broken bool // the store has failed: no more ids
	closed bool // the session has ended
}

type queued struct {
	id  string
	msg []byte
}

// maxQueued is how many messages may wait for a client to read; the connection of one
// that is slower is closed, and it gets the rest when it resumes.
const maxQueued = 256

// send queues a message. It fails when no client can get it: none listens, and none
// has an event id to come back with.
func (l *listener) send(msg []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.gone == nil && l.events == 0 {
		return errStreamGone
	}
	kept := append([]byte(nil), msg...)
	id := l.recordLocked(kept)
	if l.gone == nil {
		if id == "" {
			return errStreamGone
		}
		return nil
	}
	if len(l.queue) >= l.limit {
		l.leaveLocked()
		return nil
	}
	l.queue = append(l.queue, queued{id, kept})
	l.wakeLocked()
	return nil
}

// issued tells whether an event of that index was ever given an id.
func (l *listener) issued(index int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return index < l.events
}

func (l *listener) wakeLocked() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// recordLocked keeps an event for clients that resume. It returns "" when that is
// not possible.
func (l *listener) recordLocked(msg []byte) string {
	if l.broken {
		return ""
	}
	store, ctx := l.s.handler.options.EventStore, context.Background()
	var err error
	if l.events == 0 {
		err = store.Open(ctx, l.s.id, "0")
	}
	if err == nil {
		err = store.Append(ctx, l.s.id, "0", msg)
	}
	if err != nil {
		l.broken = true
		l.s.handler.options.Logger.Warn("event store failed; the stream cannot be resumed", "session", l.s.id, "error", err)
		return ""
	}
	l.events++
	return eventID{0, l.events - 1}.String()
}

// serve answers a GET: with the stream, after what was missed since the event
// resumed, if there is one. There is one stream at a time; a client that resumes
// replaces its own, whose connection may be dead.
func (l *listener) serve(w http.ResponseWriter, r *http.Request, resumed *eventID) {
	gone, wake := l.enter(r.Context(), resumed)
	if gone == nil {
		refuse(w, http.StatusConflict, "the session has an open stream already")
		return
	}
	defer l.exit(gone)
	o := &l.s.handler.options
	k := l.s.handler.newSink(w, r)
	if k.open(nil) != nil {
		return
	}
	defer k.close()
	timer := time.NewTimer(o.keepAlive())
	defer timer.Stop()
	for {
		var err error
		select {
		case <-gone:
			return
		case <-r.Context().Done():
			return
		case <-wake:
			err = l.flush(&k, gone)
		case <-timer.C:
			if o.KeepAlive > 0 && time.Since(k.written) >= o.KeepAlive {
				err = k.comment()
			}
			timer.Reset(max(o.keepAlive()-time.Since(k.written), time.Millisecond))
		}
		if err != nil {
			return
		}
	}
}

// enter makes the caller the one who listens. It returns nil when somebody else does.
func (l *listener) enter(ctx context.Context, resumed *eventID) (gone, wake chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil && resumed == nil {
		return nil, nil
	}
	l.leaveLocked()
	l.gone = make(chan struct{})
	l.wake = make(chan struct{}, 1)
	gone, wake = l.gone, l.wake
	switch {
	case l.closed:
		l.leaveLocked()
		return gone, wake
	case resumed != nil:
		l.missedLocked(ctx, *resumed)
	case primes(l.s.version):
		if id := l.recordLocked(nil); id != "" {
			l.queue = append(l.queue, queued{id: id})
		}
	}
	l.limit = len(l.queue) + maxQueued
	if len(l.queue) > 0 {
		l.wakeLocked()
	}
	return gone, wake
}

// missedLocked queues what the store has after an event.
func (l *listener) missedLocked(ctx context.Context, id eventID) {
	for data, err := range l.s.handler.options.EventStore.After(ctx, l.s.id, "0", id.index) {
		if err != nil {
			l.s.handler.options.Logger.Debug("resumed a stream of which events were dropped", "session", l.s.id, "error", err)
			return
		}
		id.index++
		l.queue = append(l.queue, queued{id.String(), data})
	}
}

// flush writes what is queued.
func (l *listener) flush(k *sink, gone chan struct{}) error {
	l.mu.Lock()
	var batch []queued
	if l.gone == gone {
		batch, l.queue = l.queue, nil
	}
	l.mu.Unlock()
	for _, q := range batch {
		if err := k.event(q.id, q.msg); err != nil {
			return err
		}
	}
	return nil
}

// exit ends the listening of whoever got gone from enter.
func (l *listener) exit(gone chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone == gone {
		l.leaveLocked()
	}
}

// leaveLocked ends the connection of whoever listens.
func (l *listener) leaveLocked() {
	if l.gone != nil {
		close(l.gone)
		l.gone = nil
	}
	l.queue = nil
}

// leave ends the connection of whoever listens, who may come back.
func (l *listener) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveLocked()
}

// close ends the stream with its session.
func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.leaveLocked()
}
