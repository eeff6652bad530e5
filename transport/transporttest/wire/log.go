package wire

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Kind is what an entry of a log is about.
type Kind uint8

const (
	Sent     Kind = iota // a message, or what was sent in its place
	Received             // a message
	Garbage              // a line, an event or a body that is no message
	Opened               // the head of an HTTP response
	Comment              // a comment of an event stream
	Closed               // nothing follows on this stream
	Note                 // what else happened
)

// Entry is one thing that happened. Entries are not changed once they are in a
// log.
type Entry struct {
	Index   int           // its place in the log
	At      time.Duration // since the log began
	Kind    Kind
	Stream  string  // which stream or HTTP exchange: the same text for what belongs together
	Message Message // of Sent and Received, the zero value if it is none
	Text    string  // of the other kinds, and of what was sent that is no message
	EventID string  // of Received from an event stream, "" without one
	Control bool    // about a message that only finds out what has happened
}

// String is the entry on one line.
func (e Entry) String() string {
	text := e.Text
	if e.Message.Raw != nil {
		text = string(e.Message.Raw)
	}
	const most = 400
	if len(text) > most {
		text = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
	}
	sign := map[Kind]string{Sent: "→", Received: "←", Garbage: "← no message:", Opened: "←", Comment: "← comment", Closed: "×", Note: "·"}[e.Kind]
	if e.Kind == Garbage {
		text = fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%9.3fs %-8s %s %s", e.At.Seconds(), e.Stream, sign, strings.Join(strings.Fields(text), " "))
}

// Bounds of a log.
const (
	maxEntries = 1 << 17
	maxBytes   = 32 << 20
)

// Log is what has happened between a client and a server, in order.
type Log struct {
	start time.Time // set once

	mu      sync.Mutex // guards the fields below
	entries []Entry    // only grows
	bytes   int        // of all texts
	full    bool       // set once: nothing is added any more
	changed chan struct{}
}

// NewLog returns an empty log, which begins now.
func NewLog() *Log { return &Log{start: time.Now(), changed: make(chan struct{})} }

// Add appends an entry. It reports false when the log is full.
func (l *Log) Add(e Entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addLocked(e)
}

// conclude appends the entry that says that nothing follows, and closes ended in the same
// instant: whoever sees the one sees the other. A log that is full does not take the entry.
func (l *Log) conclude(e Entry, ended chan<- struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addLocked(e)
	close(ended)
}

func (l *Log) addLocked(e Entry) bool {
	if l.full {
		return false
	}
	l.bytes += len(e.Text) + len(e.Message.Raw)
	if len(l.entries) >= maxEntries || l.bytes > maxBytes {
		l.full = true
		e = Entry{Kind: Note, Stream: e.Stream, Text: "too much was received; nothing more is read"}
	}
	e.Index, e.At = len(l.entries), time.Since(l.start)
	l.entries = append(l.entries, e)
	close(l.changed)
	l.changed = make(chan struct{})
	return !l.full
}

// Notef appends a note.
func (l *Log) Notef(format string, args ...any) {
	l.Add(Entry{Kind: Note, Text: fmt.Sprintf(format, args...)})
}

// Len is the number of entries, and so the index of the next.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Full tells whether the log has taken all that it takes.
func (l *Log) Full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full
}

// Since returns the entries from an index on.
func (l *Log) Since(from int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[min(from, len(l.entries)):len(l.entries):len(l.entries)]
}

// Find returns the first entry from an index on that matches.
func (l *Log) Find(from int, match func(Entry) bool) (Entry, bool) {
	for _, e := range l.Since(from) {
		if match(e) {
			return e, true
		}
	}
	return Entry{}, false
}

// Wait returns the first entry from an index on that matches, and waits for it.
// It reports false when ctx ends first, or when the log is full and there is none.
func (l *Log) Wait(ctx context.Context, from int, match func(Entry) bool) (Entry, bool) {
	for {
		l.mu.Lock()
		changed, full, entries := l.changed, l.full, l.entries
		l.mu.Unlock()
		for ; from < len(entries); from++ {
			if match(entries[from]) {
				return entries[from], true
			}
		}
		if full {
			return Entry{}, false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Entry{}, false
		}
	}
}
