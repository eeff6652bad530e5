package schema

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxQuoted = 64 // bytes of untrusted text shown before it is cut

// quote shows untrusted text: quoted, bounded.
func quote(s string) string { return strconv.Quote(clip(s, maxQuoted)) }

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	for len(s) > 0 && !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}

// plainText shows the text of a foreign error: one line, bounded.
func plainText(s string) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s), 200)
}

// member is the path of an object's member: whole.name, or whole["odd name"].
func member(whole, name string) string {
	if !plainName(name) {
		return whole + "[" + quote(name) + "]"
	}
	if whole == "" {
		return name
	}
	return whole + "." + name
}

// element is the path of an array's element: whole[3].
func element(whole string, i int) string { return whole + "[" + strconv.Itoa(i) + "]" }

// join appends a relative path to another.
func join(whole, part string) string {
	if whole == "" || part == "" || strings.HasPrefix(part, "[") {
		return whole + part
	}
	return whole + "." + part
}

func plainName(s string) bool {
	if s == "" || len(s) > maxQuoted {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '$':
		case i > 0 && ('0' <= c && c <= '9' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// pointerToken escapes a name for a JSON pointer inside a URI fragment.
func pointerToken(name string) string { return url.PathEscape(pointerEscapes.Replace(name)) }

// pointerEscapes is made once: a replacer builds tables of 10 kB when it is first used.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
