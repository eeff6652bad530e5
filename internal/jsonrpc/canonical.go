package jsonrpc

import (
	"bytes"
	"math"
	"slices"
)

// AppendCanonical appends a JSON value, which must be valid, in a form that does not
// depend on white space, on the order in which members of different names stand, and on how
// strings are escaped. Members of one name keep their order, and numbers their text.
// Members of the outermost object that are named in except are left out.
//
// It takes one pass, but for members that are not in order: those of each object are moved
// once.
func AppendCanonical(b, raw []byte, except ...string) []byte {
	c := canonicalizer{s: scanner{b: raw, limit: math.MaxInt}, out: b, except: except}
	c.value(skipSpace(raw, 0), 0)
	return c.out
}

// canonicalizer is one walk of AppendCanonical.
type canonicalizer struct {
	s       scanner
	out     []byte
	except  []string
	members []written // of the objects that are open, one after another
	moved   []byte    // room for members that change places
	text    []byte    // room for the text of a string with escapes
}

// written is a member in out, from its name to the comma behind its value.
type written struct{ name, nameEnd, end int }

// value writes the value at i, inside of depth open containers, and returns the offset behind it,
// a negative one when the text is malformed after all.
func (c *canonicalizer) value(i, depth int) int {
	b := c.s.b
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case '{':
		return c.object(skipSpace(b, i+1), depth+1)
	case '[':
		return c.array(skipSpace(b, i+1), depth+1)
	case '"':
		end, escaped := scanString(b, i+1)
		if end > 0 {
			c.string(span{i + 1, end - 1, escaped})
		}
		return end
	}
	end := c.s.value(i, depth)
	if end > 0 {
		c.out = append(c.out, b[i:end]...)
	}
	return end
}

func (c *canonicalizer) array(i, depth int) int {
	c.out = append(c.out, '[')
	for done := c.empty(i, ']'); !done; {
		if i = c.value(i, depth); i < 0 {
			return i
		}
		if i, done = c.s.more(i, ']'); i < 0 {
			return i
		}
		c.out = append(c.out, ',')
		if done {
			c.out[len(c.out)-1] = ']'
			return i
		}
	}
	c.out = append(c.out, ']')
	return i + 1
}

func (c *canonicalizer) object(i, depth int) int {
	c.out = append(c.out, '{')
	mark := len(c.members)
	for done := c.empty(i, '}'); !done; {
		name, at := c.s.key(i)
		if at < 0 {
			return at
		}
		m := written{name: len(c.out)}
		c.string(name)
		m.nameEnd = len(c.out)
		c.out = append(c.out, ':')
		if i = c.value(at, depth); i < 0 {
			return i
		}
		c.out = append(c.out, ',')
		if m.end = len(c.out); depth == 1 && c.excepted(name) {
			c.out = c.out[:m.name]
		} else {
			c.members = append(c.members, m)
		}
		if i, done = c.s.more(i, '}'); i < 0 {
			return i
		}
		if done {
			i-- // as after an empty one
		}
	}
	if len(c.members) == mark {
		c.out = append(c.out, '}')
		return i + 1
	}
	c.order(c.members[mark:])
	c.members = c.members[:mark]
	c.out[len(c.out)-1] = '}'
	return i + 1
}

// empty tells whether the container that begins before i ends there.
func (c *canonicalizer) empty(i int, closing byte) bool { return i < len(c.s.b) && c.s.b[i] == closing }

// order sorts the last members of out.
func (c *canonicalizer) order(members []written) {
	compare := func(a, b written) int {
		return bytes.Compare(c.out[a.name:a.nameEnd], c.out[b.name:b.nameEnd])
	}
	if slices.IsSortedFunc(members, compare) {
		return
	}
	first := members[0].name
	slices.SortStableFunc(members, compare)
	c.moved = c.moved[:0]
	for _, m := range members {
		c.moved = append(c.moved, c.out[m.name:m.end]...)
	}
	copy(c.out[first:], c.moved)
}

func (c *canonicalizer) excepted(name span) bool {
	return slices.ContainsFunc(c.except, func(word string) bool { return equal(c.s.text(name), name.escaped, word) })
}

// string writes a string in the one spelling that AppendString has for its text. One without a text, as
// with a lone surrogate, stays as it is.
func (c *canonicalizer) string(k span) {
	inside := c.s.text(k)
	exact := true
	if k.escaped {
		if c.text, exact = appendDecoded(c.text[:0], inside); exact {
			inside = c.text
		}
	}
	if exact {
		c.out = AppendString(c.out, alias(inside))
		return
	}
	c.out = append(c.out, '"')
	c.out = append(c.out, inside...)
	c.out = append(c.out, '"')
}
