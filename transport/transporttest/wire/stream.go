package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// StreamName is what entries about a stream of lines call it.
const StreamName = "stream"

// maxLine is how long a line may be that is kept.
const maxLine = 16 << 20

// Stream is the client's end of a stream of lines.
type Stream struct {
	log   *Log
	r     io.Reader
	w     io.WriteCloser
	ended chan struct{} // closed when nothing more is read
	err   error         // why, nil for the end of r; written by read before it closes ended

	mu sync.Mutex // one writer at a time
}

// NewStream reads from r until that ends, into the log, and writes to w. Whoever
// opened r sees to it that reading ends.
func NewStream(log *Log, r io.Reader, w io.WriteCloser) *Stream {
	s := &Stream{log: log, r: r, w: w, ended: make(chan struct{})}
	go s.read()
	return s
}

// Ended is closed when nothing more is read. The log says so in the same instant.
func (s *Stream) Ended() <-chan struct{} { return s.ended }

// Err is why nothing more is read, although the other side may have more to say: a failure, or
// more than can be kept. It is nil before Ended is closed, and when the other side has
// ended the stream.
func (s *Stream) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

func (s *Stream) read() {
	text := "end of the stream"
	if s.err = s.lines(); s.err != nil {
		text += ": " + s.err.Error()
	}
	s.log.conclude(Entry{Kind: Closed, Stream: StreamName, Text: text}, s.ended)
}

// lines logs line after line. It returns nil at the end of the stream.
func (s *Stream) lines() error {
	reader := bufio.NewReaderSize(s.r, 64<<10)
	for {
		line, err := readLine(reader)
		switch {
		case len(line) > 0 && !s.received(line, err == nil):
			return errFull
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

var errLongLine = fmt.Errorf("a line of more than %d bytes", maxLine)

// readLine reads a line without its end. The error is why there is no end.
func readLine(reader *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > maxLine:
			return line[:maxLine], errLongLine
		}
	}
}

// received logs a line. It reports false when the log is full.
func (s *Stream) received(line []byte, whole bool) bool {
	text := bytes.TrimSuffix(line, []byte("\r"))
	m, err := Parse(text)
	if err != nil || !whole {
		return s.log.Add(Entry{Kind: Garbage, Stream: StreamName, Text: string(line)})
	}
	return s.log.Add(Entry{Kind: Received, Stream: StreamName, Message: m})
}

// Send writes lines in one write. It blocks as long as nobody reads.
func (s *Stream) Send(lines ...[]byte) error { return s.send(false, lines) }

// SendControl is Send for messages that only find out what has happened.
func (s *Stream) SendControl(lines ...[]byte) error { return s.send(true, lines) }

func (s *Stream) send(control bool, lines [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []byte
	for _, line := range lines {
		s.log.Add(sent(StreamName, line, control))
		all = append(append(all, line...), '\n')
	}
	if _, err := s.w.Write(all); err != nil {
		s.log.Add(Entry{Kind: Note, Stream: StreamName, Text: "write: " + err.Error(), Control: control})
		return err
	}
	return nil
}

func sent(stream string, text []byte, control bool) Entry {
	e := Entry{Kind: Sent, Stream: stream, Control: control}
	var err error
	if e.Message, err = Parse(text); err != nil {
		e.Message, e.Text = Message{}, string(text)
	}
	return e
}

// CloseInput ends what the server reads.
func (s *Stream) CloseInput() error {
	s.log.Add(Entry{Kind: Note, Stream: StreamName, Text: "the client closes the server's input"})
	return s.w.Close()
}
