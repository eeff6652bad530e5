package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errFull = errors.New("too much was received")

// events reads an event stream to its end. Events are logged as the messages that
// they carry; those without data only for their id.
func (x *Exchange) events(r io.Reader) error {
	reader := bufio.NewReaderSize(r, 64<<10)
	var data []byte
	var id string
	hasData := false
	for {
		line, err := readLine(reader)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil // what is incomplete is no event
			}
			return err
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if !x.event(id, data, hasData) {
				return errFull
			}
			data, id, hasData = nil, "", false
		case len(name) == 0:
			if !x.add(Entry{Kind: Comment, Text: string(value)}) {
				return errFull
			}
		case string(name) == "data":
			if hasData {
				data = append(data, '\n')
			}
			data, hasData = append(data, value...), true
		case string(name) == "id":
			id = string(value)
		}
		if len(data) > maxLine {
			return errLongLine
		}
	}
}

func (x *Exchange) event(id string, data []byte, hasData bool) bool {
	if id != "" {
		x.mu.Lock()
		x.eventID = id
		x.mu.Unlock()
	}
	if !hasData || len(bytes.TrimSpace(data)) == 0 {
		return true
	}
	return x.message(data, id)
}
