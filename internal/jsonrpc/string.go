package jsonrpc

import (
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
