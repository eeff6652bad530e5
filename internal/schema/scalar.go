package schema

import (
	"slices"
	"unicode/utf8"
)

// accept reads the next value and says that it surely conforms.
func (p *scalar) accept(s *scanner) bool {
	switch p.kind {
	case 's':
		return p.acceptString(s)
	case 'b':
		switch s.peek() {
		case 't':
			return s.word("true") == nil
		case 'f':
			return s.word("false") == nil
		}
		return false
	}
	raw, integer, err := s.num()
	if err != nil {
		return false
	}
	if p.min == nil && p.max == nil && p.numbers == nil && (integer || p.kind == 'n') {
		return computable(raw, integer)
	}
	n, ok := parseSmall(raw)
	return ok && (p.min == nil || n >= *p.min) && (p.max == nil || n <= *p.max) &&
		(p.numbers == nil || slices.Contains(p.numbers, n))
}

func (p *scalar) acceptString(s *scanner) bool {
	raw, plain, err := s.str()
	if err != nil {
		return false
	}
	if p.words == nil && p.minLen == 0 && p.maxLen < 0 {
		return true
	}
	if !plain {
		return false
	}
	raw = raw[1 : len(raw)-1]
	if p.minLen > 0 || p.maxLen >= 0 {
		if n := utf8.RuneCount(raw); n < p.minLen || p.maxLen >= 0 && n > p.maxLen {
			return false
		}
	}
	if p.words == nil {
		return true
	}
	for _, word := range p.words {
		if word == string(raw) {
			return true
		}
	}
	return false
}

// parseSmall reads an integer of at most 18 digits; false for every other number.
func parseSmall(raw []byte) (int64, bool) {
	digits := raw
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(raw) {
		n = -n
	}
	return n, true
}
