package stdio

import (
	"io"
	"time"
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

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

// calm takes back the deadlines that interrupted: the stream is the caller's.
func calm(r io.Reader, w io.Writer) {
	if d, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok {
		d.SetReadDeadline(time.Time{})
	}
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		d.SetWriteDeadline(time.Time{})
	}
}
