package streamable

import (
	"strconv"
	"strings"
)

// eventID names an event of a session: which stream it belongs to, and its place in it.
// It is sent as stream-index, two decimal numbers.
type eventID struct {
	stream uint64
	index  int
}

func (e eventID) String() string {
	b := strconv.AppendUint(make([]byte, 0, 24), e.stream, 10)
	b = append(b, '-')
	return string(strconv.AppendInt(b, int64(e.index), 10))
}

// parseEventID reads what String wrote. It reports false for anything else.
func parseEventID(text string) (e eventID, ok bool) {
	stream, index, found := strings.Cut(text, "-")
	if !found {
		return e, false
	}
	n, err := strconv.ParseUint(stream, 10, 64)
	if err != nil {
		return e, false
	}
	i, err := strconv.ParseUint(index, 10, 31)
	if err != nil {
		return e, false
	}
	e = eventID{stream: n, index: int(i)}
	return e, e.String() == text
}
