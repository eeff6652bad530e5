package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Unquote returns the text of a JSON string. It reports false when raw is not
// exactly one JSON string, quotes included, or when its text cannot be told
// without replacing something, as with a lone surrogate. The result shares
// memory with raw unless raw holds escapes.
func Unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	end, escaped := scanString(raw, 1)
	if end != len(raw) {
		return "", false
	}
	return decode(raw[1:len(raw)-1], escaped)
}

// decode returns the text inside a valid JSON string.
func decode(inside []byte, escaped bool) (string, bool) {
	if !escaped {
		return alias(inside), true
	}
	text, exact := appendDecoded(make([]byte, 0, len(inside)), inside)
	return alias(text), exact
}

// equal reports whether the inside of a valid JSON string spells want.
func equal(inside []byte, escaped bool, want string) bool {
	if !escaped {
		return string(inside) == want
	}
	var buf [64]byte
	text, _ := appendDecoded(buf[:0], inside)
	return string(text) == want
}

// appendDecoded appends the text inside a valid JSON string. A lone surrogate
// becomes the three bytes that UTF-8 would have for it, so that different
// strings stay different, and exact is false.
func appendDecoded(dst, inside []byte) (text []byte, exact bool) {
	exact = true
	for i := 0; i < len(inside); {
		if inside[i] != '\\' {
			dst = append(dst, inside[i])
			i++
			continue
		}
		c := inside[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(inside[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if i+6 <= len(inside) && inside[i] == '\\' && inside[i+1] == 'u' {
					pair = utf16.DecodeRune(r, hex4(inside[i+2:]))
				}
				if pair == utf8.RuneError {
					exact = false
					dst = append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
					continue
				}
				r = pair
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
	return dst, exact
}

// hex4 reads four hexadecimal digits that are known to be there.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		d := rune(c - '0')
		if c > '9' {
			d = rune(c|0x20) - 'a' + 10
		}
		r = r<<4 | d
	}
	return r
}

// alias returns b as a string without a copy; see the package's rule on
// aliasing.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// view returns s as bytes without a copy. They must not be written.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// scanString walks a string from behind its opening quote.
func scanString(b []byte, i int) (end int, escaped bool) {
	first := i
	var high uint64
	for {
		i, high = special(b, i, high)
		if i >= len(b) {
			return ^i, escaped
		}
		switch b[i] {
		case '"':
			if high&highBits != 0 {
				if bad := invalidUTF8(b[first:i]); bad >= 0 {
					return ^(first + bad), escaped
				}
			}
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = scanEscape(b, i+1); i < 0 {
				return i, true
			}
		default:
			return ^i, escaped
		}
	}
}

// scanEscape walks an escape from behind its backslash.
func scanEscape(b []byte, i int) int {
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for k := i + 1; k <= i+4; k++ {
			if k >= len(b) || !isHex(b[k]) {
				return ^k
			}
		}
		return i + 5
	}
	return ^i
}

func isHex(c byte) bool { return c-'0' <= 9 || c|0x20-'a' <= 5 }

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special returns the offset of the next quote, backslash or control character
// at or after i, or len(b). It looks at eight bytes at a time: for each test
// the lowest marked byte is exact, because a borrow only ever reaches the bytes
// above a hit. The bits of the bytes passed are added to high, whose high bits
// tell whether any of them was not ASCII.
func special(b []byte, i int, high uint64) (int, uint64) {
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		quote := w ^ '"'*lowBits
		slash := w ^ '\\'*lowBits
		hit := ((w-0x20*lowBits)&^w | (quote-lowBits)&^quote | (slash-lowBits)&^slash) & highBits
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3, high | w&(hit&-hit-1)
		}
		high |= w
		i += 8
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c == '"' || c == '\\' || c < 0x20 {
			break
		}
		high |= uint64(c)
	}
	return i, high
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}
