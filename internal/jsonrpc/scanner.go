package jsonrpc

// DefaultDepth is the nesting allowed by the zero [Limits].
const DefaultDepth = 128

// DefaultBatch is the number of batch elements allowed by the zero [Limits].
const DefaultBatch = 1024

// Limits bound what one message may cost its reader. The zero value holds the
// defaults.
type Limits struct {
	// Depth is how many objects and arrays may be open at once, the message's
	// own object included. Zero or less means DefaultDepth.
	Depth int
	// Batch is how many elements a batch may have; each may be owed an answer
	// many times its size. Zero or less means DefaultBatch.
	Batch int
}

func (l Limits) depth() int {
	if l.Depth <= 0 {
		return DefaultDepth
	}
	return l.Depth
}

func (l Limits) batch() int {
	if l.Batch <= 0 {
		return DefaultBatch
	}
	return l.Batch
}

// Valid reports whether b is exactly one JSON value, white space aside. It
// returns nil, or an error with CodeParseError when b is not JSON and with
// CodeInvalidRequest when it is JSON nested deeper than lim allows.
func Valid(b []byte, lim Limits) *Error {
	s := scanner{b: b, limit: lim.depth()}
	return s.whole(skipSpace(b, 0))
}

// A scanner walks JSON text. Its methods take the offset where something
// starts and return the offset behind it; a negative result n means that the
// text is malformed at ^n.
type scanner struct {
	b     []byte // never written
	limit int    // deepest nesting allowed, set by the owner
	deep  bool   // set by value and enter, once; the walk goes on, so that the rest is known as well
}

// A span is the inside of a JSON string, without its quotes.
type span struct {
	from, to int
	escaped  bool // holds at least one backslash
}

func (s *scanner) text(k span) []byte { return s.b[k.from:k.to] }

// whole walks a value at i that must be the last thing in the text.
func (s *scanner) whole(i int) *Error {
	end := s.value(i, 0)
	if end >= 0 {
		end = s.finish(end)
	}
	if end < 0 {
		return syntaxError(s.b, ^end)
	}
	if s.deep {
		return tooDeep(s.limit)
	}
	return nil
}

// finish requires that only white space follows.
func (s *scanner) finish(i int) int {
	if i = skipSpace(s.b, i); i < len(s.b) {
		return ^i
	}
	return i
}

// enter notes that a container at this depth is open.
func (s *scanner) enter(depth int) {
	if depth > s.limit {
		s.deep = true
	}
}

// key reads a member's name and colon and returns where its value starts.
func (s *scanner) key(i int) (span, int) {
	b := s.b
	if i >= len(b) || b[i] != '"' {
		return span{}, ^i
	}
	end, escaped := scanString(b, i+1)
	if end < 0 {
		return span{}, end
	}
	k := span{from: i + 1, to: end - 1, escaped: escaped}
	i = skipSpace(b, end)
	if i >= len(b) || b[i] != ':' {
		return k, ^i
	}
	return k, skipSpace(b, i+1)
}

// more reads what follows an element: a comma, then it returns where the next
// one starts, or the closing bracket.
func (s *scanner) more(i int, closing byte) (next int, done bool) {
	b := s.b
	i = skipSpace(b, i)
	if i >= len(b) {
		return ^i, false
	}
	switch b[i] {
	case ',':
		return skipSpace(b, i+1), false
	case closing:
		return i + 1, true
	}
	return ^i, false
}

// value walks the value that starts at i inside depth open containers.
//
// It does not recurse: which bracket closes a container is one bit, so the
// deepest text that fits a message costs an eighth of its size and a limit
// needs no early end.
func (s *scanner) value(i, depth int) int {
	var (
		b        = s.b
		inline   [4]uint64
		outer    = inline[:] // bit k: the k-th open container lies in an object
		n        int         // containers opened here and not yet closed
		inObject bool        // the innermost of them is an object
	)
	for {
		if inObject {
			if _, i = s.key(i); i < 0 {
				return i
			}
		}
		if i >= len(b) {
			return ^i
		}
		switch c := b[i]; c {
		case '"':
			i, _ = scanString(b, i+1)
		case '{', '[':
			s.enter(depth + n + 1)
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // '}' is '{'+2, ']' is '['+2
				i++
				break
			}
			if n>>6 == len(outer) {
				outer = append(outer, 0)
			}
			if inObject {
				outer[n>>6] |= 1 << (n & 63)
			} else {
				outer[n>>6] &^= 1 << (n & 63)
			}
			n++
			inObject = c == '{'
			continue
		case 't':
			i = scanLiteral(b, i, "true")
		case 'f':
			i = scanLiteral(b, i, "false")
		case 'n':
			i = scanLiteral(b, i, "null")
		default:
			i = scanNumber(b, i)
		}
		if i < 0 {
			return i
		}
		for {
			if n == 0 {
				return i
			}
			closing, done := byte(']'), false
			if inObject {
				closing = '}'
			}
			if i, done = s.more(i, closing); i < 0 {
				return i
			}
			if !done {
				break
			}
			n--
			inObject = outer[n>>6]&(1<<(n&63)) != 0
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

func scanLiteral(b []byte, i int, word string) int {
	for k := range len(word) {
		if i+k >= len(b) || b[i+k] != word[k] {
			return ^(i + k)
		}
	}
	return i + len(word)
}

func scanNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = scanDigits(b, i); i < 0 {
		return i
	}
	if i < len(b) && b[i] == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return i
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = scanDigits(b, i)
	}
	return i
}

// scanDigits requires at least one digit.
func scanDigits(b []byte, i int) int {
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == first {
		return ^i
	}
	return i
}
