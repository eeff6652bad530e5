package stdio

import (
	"bytes"
	"errors"
	"io"
)

// Invariants of this file. Each has a test named after it.
//
//	L1  The lines do not depend on how the bytes arrive.
//	L2  Bytes that were handed out are never written again.
//	L3  A line over the limit is reported once, and takes no more memory than
//	    one within it.

// Sizes of the blocks that input is read into, in bytes. Many short lines share a block,
// which saves allocations; a request that runs long keeps its block alive, so
// blocks are not large.
const (
	firstBlock = 4 << 10
	fullBlock  = 32 << 10
)

// errTooLong is returned by next for a line over the limit, which was skipped.
var errTooLong = errors.New("stdio: the line is too long")

// lines splits a stream of bytes. It is used by one goroutine.
type lines struct {
	r   io.Reader
	max int // the longest line, its end not counted

	buf      []byte // what was read into; bytes before start were handed out
	start    int    // where the next line begins
	scanned  int    // up to where no line end was found
	end      int    // up to where bytes were read
	block    int    // size of the next block; grows while reads fill theirs
	skipping bool   // the line at start is over the limit; its bytes are dropped
	begun    bool   // the first line was seen
	err      error  // why nothing more can be read
}

func newLines(r io.Reader, max int) *lines {
	return &lines{r: r, max: max, block: firstBlock}
}

// next returns the next line that is not blank, without white space around it. The
// caller may keep it. A last line without a line end counts. At the end of
// the input next returns the reader's error.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scanned:l.end], '\n'); i >= 0 {
			to := l.scanned + i
			line, err := l.take(to)
			l.start, l.scanned = to+1, to+1
			if line != nil || err != nil {
				return line, err
			}
			continue
		}
		l.scanned = l.end
		if l.end-l.start > l.max {
			l.skipping = true
		}
		if l.skipping {
			l.scanned, l.end = l.start, l.start // nobody has seen these bytes: the place is free
		}
		if l.err != nil {
			line, err := l.take(l.end)
			l.start = l.end
			if line != nil || err != nil {
				return line, err
			}
			return nil, l.err
		}
		l.fill()
	}
}

// take cuts the line that ends before to; nil if it is blank.
func (l *lines) take(to int) ([]byte, error) {
	line := l.buf[l.start:to:to]
	first := !l.begun
	l.begun = l.begun || len(line) > 0
	if l.skipping || len(line) > l.max {
		l.skipping = false
		return nil, errTooLong
	}
	if first {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if line = trim(line); len(line) == 0 {
		return nil, nil
	}
	return line, nil
}

// byteOrderMark is what some shells put in front of what they pipe.
var byteOrderMark = []byte("\xef\xbb\xbf")

// trim removes white space as JSON has it.
func trim(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// fill reads once, after it has made room.
func (l *lines) fill() {
	if len(l.buf)-l.end < l.block/8 || l.start == l.end && len(l.buf) > fullBlock {
		l.renew()
	}
	for range maxEmptyReads {
		n, err := l.r.Read(l.buf[l.end:])
		if n < 0 || n > len(l.buf)-l.end {
			panic("stdio: reader returned an impossible count")
		}
		if n == len(l.buf)-l.end {
			l.block = min(2*l.block, fullBlock)
		}
		l.end += n
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// maxEmptyReads is how often a reader may return neither bytes nor an error.
const maxEmptyReads = 100

// renew moves the line that has begun to a new block (L2: the old one belongs
// to those who hold its lines).
func (l *lines) renew() {
	begun := l.end - l.start
	size := l.block
	if begun > size/2 {
		size = begun + min(begun, l.max-begun+1) + l.block/8
	}
	buf := make([]byte, size)
	copy(buf, l.buf[l.start:l.end])
	l.scanned -= l.start
	l.start, l.end, l.buf = 0, begun, buf
}
