package stdio

import (
	"io"
	"time"
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// interruptGrace is how long what was interrupted may take to return. Not every
// Close frees whoever is in a Read.
const interruptGrace = 100 * time.Millisecond

// interruptRead makes a Read that is under way return, by a deadline if r has
// them, else by closing it. It reports false when r has neither.
func interruptRead(r io.Reader) bool {
	if d, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(past) == nil // a terminal, or a file, has none; closing it frees nobody
	}
	return closeStream(r)
}

// interruptWrite is the same for a Write.
func interruptWrite(w io.Writer) bool {
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		return d.SetWriteDeadline(past) == nil // a terminal, or a file, has none; closing it frees nobody
	}
	return closeStream(w)
}

func closeStream(v any) bool {
	c, ok := v.(io.Closer)
	if ok {
		c.Close()
	}
	return ok
}

// calmRead takes back the deadline that interrupted: the stream is the caller's.
func calmRead(r io.Reader) {
	if d, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok {
		d.SetReadDeadline(time.Time{})
	}
}

func calmWrite(w io.Writer) {
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		d.SetWriteDeadline(time.Time{})
	}
}
