package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// scanner reads JSON text strictly (RFC 8259) and without allocating.
type scanner struct {
	b []byte
	i int // next byte
}

type syntaxError struct {
	offset int
	what   string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("is not valid JSON: %s at byte %d", e.what, e.offset)
}

func (s *scanner) fail(what string) error { return &syntaxError{s.i, what} }

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end; a NUL byte is no JSON, so they need no distinction.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.fail(fmt.Sprintf("expected %q", c))
	}
	s.i++
	return nil
}

func (s *scanner) end() error {
	if s.space(); s.i != len(s.b) {
		return s.fail("unexpected data after the value")
	}
	return nil
}

// str reads a string and returns it with its quotes; plain says that it holds no escape and is valid UTF-8.
func (s *scanner) str() (raw []byte, plain bool, err error) {
	if s.peek() != '"' {
		return nil, false, s.fail("expected a string")
	}
	start := s.i
	s.i++
	plain = true
	ascii := true
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			raw = s.b[start:s.i]
			return raw, plain && (ascii || utf8.Valid(raw)), nil
		case c == '\\':
			plain = false
			if err := s.escape(); err != nil {
				return nil, false, err
			}
		case c < 0x20:
			return nil, false, s.fail("control character in a string")
		default:
			if c >= utf8.RuneSelf {
				ascii = false
			}
			s.i++
		}
	}
	return nil, false, s.fail("unfinished string")
}

func (s *scanner) escape() error {
	s.i++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i++
		return nil
	case 'u':
		s.i++
		for range 4 {
			switch c := s.peek(); {
			case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
				s.i++
			default:
				return s.fail("bad \\u escape in a string")
			}
		}
		return nil
	}
	return s.fail("bad escape in a string")
}

func (s *scanner) digits() bool {
	start := s.i
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.i++
	}
	return s.i > start
}

// num reads a number; integer says that it has neither fraction nor exponent.
func (s *scanner) num() (raw []byte, integer bool, err error) {
	start := s.i
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return nil, false, s.fail("expected a digit")
	}
	integer = true
	if s.peek() == '.' {
		s.i++
		integer = false
		if !s.digits() {
			return nil, false, s.fail("expected a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		integer = false
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return nil, false, s.fail("expected a digit")
		}
	}
	return s.b[start:s.i], integer, nil
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		return s.fail("unexpected character")
	}
	s.i += len(w)
	return nil
}

// unquote returns the text of a string read by str.
func unquote(raw []byte, plain bool) string {
	if plain {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		panic("schema: scanned string does not decode: " + err.Error())
	}
	return text
}
