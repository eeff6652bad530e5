package jsonrpc

import (
	"strconv"
	"strings"
)

// An ID is a request id. The zero ID is no id at all; 0 and "" are ids.
//
// IDs are compared with == and may be map keys. Two are equal if both are
// numbers with the same text, or both strings with the same value.
//
// See https://modelcontextprotocol.io/specification/2025-11-25/basic#requests:
// an id is a string or a number and never null.
type ID struct {
	// text is the JSON text, written once by the constructor. A string never
	// has an escape it does not need, so equal values have equal texts.
	text string
}

// NumberID returns the id n.
func NumberID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// StringID returns the id "s". Bytes of s that are not UTF-8 become U+FFFD.
func StringID(s string) ID {
	return ID{alias(AppendString(make([]byte, 0, len(s)+2), s))}
}

// ParseID returns the id that raw spells. It reports false when raw is not
// exactly one JSON string or number, or is a string with a lone surrogate. The
// id shares memory with raw unless raw holds escapes.
func ParseID(raw []byte) (ID, bool) {
	if len(raw) == 0 {
		return ID{}, false
	}
	if raw[0] == '"' {
		end, escaped := scanString(raw, 1)
		if end != len(raw) {
			return ID{}, false
		}
		return makeID(raw, escaped)
	}
	if scanNumber(raw, 0) != len(raw) {
		return ID{}, false
	}
	return makeID(raw, false)
}

// makeID makes an id from a valid string or number.
func makeID(raw []byte, escaped bool) (ID, bool) {
	if !escaped {
		return ID{alias(raw)}, true
	}
	s, exact := decode(raw[1:len(raw)-1], true)
	if !exact {
		return ID{}, false
	}
	return StringID(s), true
}

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// String returns the JSON text: 7, 3.7, "7"; the empty string for no id.
func (id ID) String() string { return id.text }

// Append appends the JSON text, or null for no id.
func (id ID) Append(b []byte) []byte {
	if id.text == "" {
		return append(b, "null"...)
	}
	return append(b, id.text...)
}

// Clone returns an equal id that shares no memory with the message it came
// from.
func (id ID) Clone() ID { return ID{strings.Clone(id.text)} }

// Text returns the value of a string id. It reports false for a number and for
// no id.
func (id ID) Text() (string, bool) { return Unquote(view(id.text)) }

// Int64 returns the value of a number id written as a plain integer. It reports
// false for a string, a number with a fraction or an exponent, one that does
// not fit, minus zero, and for no id.
func (id ID) Int64() (int64, bool) {
	n, err := strconv.ParseInt(id.text, 10, 64)
	return n, err == nil && id.text != "-0"
}
